import { expect, test } from "vitest";

import { progressOf } from "./facts";

test.each([
  ["RUNNING", 0.25, 1, 4, 0.25],
  ["RUNNING", null, 0, 4, 0],
  ["COMPLETED", null, 3, 4, 1],
  ["CANCELED", null, 1, 4, 0.25],
  ["ERROR", null, 0, 4, 0],
  ["CANCELED", null, 0, 0, 0],
])("%s with a progress of %s and %s of %s trials done is at %s", (state, progress, done, total, share) => {
  expect(progressOf({ state: `STATE_${state}`, progress }, { done, stopped: 0 }, total)).toBe(share);
});
