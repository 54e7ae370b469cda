import { expect, test } from "vitest";

import { neverAgain } from "./facts";

test.each([
  ["RUNNING", "none so far"],
  ["COMPLETED", "it ran through"],
  ["CANCELED", "it was ended"],
  ["ERROR", "it failed at its first try"],
])("a trial that is %s was not started again: %s", (state, words) => {
  expect(neverAgain({ state: `STATE_${state}` })).toBe(words);
});
