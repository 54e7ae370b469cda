import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { type Stretch, worthTelling } from "./story";

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 0, 1, 0, 0, 30) }));
afterEach(() => void vi.useRealTimers());

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const stretch = (what: Stretch["what"], from: number, to: number | null): Stretch => ({
  what,
  since: at(from),
  until: to === null ? null : at(to),
  actor: "",
  reason: "",
  position: from,
});
const kinds = (all: Stretch[]) => worthTelling(all).map((stretch) => stretch.what);

test("what took no second is not told, but for what it is now", () => {
  expect(kinds([stretch("waited", 0, 0.2), stretch("ran", 0.2, 20), stretch("waited", 20, 20)])).toEqual(["ran", "waited"]);
  expect(kinds([stretch("waited", 0, 0.1), stretch("ran", 30, null)])).toEqual(["ran"]);
});
