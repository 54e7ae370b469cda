import { expect, test } from "vitest";

import { forecast } from "./spent";

test("uses the overall pace until progress is seen, then the mean of the overall and the recent pace", () => {
  expect(forecast(0.25, 100, null)).toEqual({ left: 300, spread: 0 });
  expect(forecast(0.5, 100, { gained: 0.1, tookS: 40 })).toEqual({ left: 150, spread: 50 });
});

test("no forecast before the start or after the end", () => {
  for (const [progress, ran] of [
    [0, 10],
    [1, 10],
    [0.5, 0],
  ] as const)
    expect(forecast(progress, ran, null)).toBeNull();
});
