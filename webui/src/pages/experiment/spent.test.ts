import { expect, test } from "vitest";

import { forecast } from "./spent";

test("by the pace of all until it is seen going on, then between that and the pace of late", () => {
  expect(forecast(0.25, 100, null)).toEqual({ left: 300, spread: 0 });
  expect(forecast(0.5, 100, { gained: 0.1, tookS: 40 })).toEqual({ left: 150, spread: 50 });
});

test("nothing is told of what has not begun, or is over", () => {
  for (const [progress, ran] of [
    [0, 10],
    [1, 10],
    [0.5, 0],
  ] as const)
    expect(forecast(progress, ran, null)).toBeNull();
});
