import { expect, test } from "vitest";

import { rounded } from "./course";

test.each([
  [0.82, 0.86, [0.82, 0.84, 0.86]],
  [0.9359, 0.9771, [0.94, 0.95, 0.96, 0.97]],
  [0.161, 1.762, [0.5, 1, 1.5]],
  [-3, 12, [0, 5, 10]],
  [1000, 1900, [1000, 1500]],
])("lines between %d and %d are at round values", (low, high, lines) => expect(rounded(low, high)).toEqual(lines));

test("values that are all the same have a line, or none", () => {
  expect(rounded(0.5, 0.5).length).toBeLessThan(3);
  expect(rounded(0, 0)).toEqual([0]);
});
