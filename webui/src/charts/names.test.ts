import { expect, test } from "vitest";

import { timedAxis } from "./link";
import { isTimed } from "./names";

test("what the worker samples is known by time only", () => {
  expect(isTimed(["profile.process"])).toBe(true);
  expect(isTimed(["profile.process", "profile.system"])).toBe(false);
  expect(isTimed([])).toBe(false);
});

test("it is drawn over the time since the start if another axis is chosen", () => {
  expect(["batches", "metric:loss", "since", "time"].map(timedAxis)).toEqual(["since", "since", "since", "time"]);
});
