import { expect, test } from "vitest";

import { smooth } from "./smooth";

test("a constant stays as it is, from its first point on", () => {
  expect(smooth([0, 1, 5, 6], [3, 3, 3, 3], 0.9).map((y) => y!.toFixed(9))).toEqual(Array(4).fill("3.000000000"));
});

test("without weight nothing changes", () => {
  expect(smooth([0, 1, 2], [1, 5, 2], 0)).toEqual([1, 5, 2]);
});

test("with equal distances it is the per-point average, with bias correction at the start", () => {
  const smoothed = smooth([0, 1, 2], [1, 2, 4], 0.5);
  expect(smoothed[1]).toBeCloseTo((0.5 * 1 + 2) / 1.5, 12);
  expect(smoothed[2]).toBeCloseTo((0.25 * 1 + 0.5 * 2 + 4) / 1.75, 12);
});

test("points far behind count less", () => {
  // The mean distance is 5: a point 1 behind counts 0.5 ** 0.2, one 9 behind 0.5 ** 1.8.
  const smoothed = smooth([0, 1, 10], [0, 1, 1], 0.5);
  expect(smoothed[1]).toBeCloseTo(1 / (1 + 0.5 ** 0.2), 12);
  expect(smoothed[2]).toBeCloseTo((1 + 0.5 ** 1.8) / (1 + 0.5 ** 1.8 + 0.5 ** 2), 12);
});

test("gaps stay gaps, and smoothing continues after them", () => {
  const smoothed = smooth([0, 1, 2], [1, null, 1], 0.8);
  expect(smoothed[1]).toBeNull();
  expect(smoothed[2]).toBeCloseTo(1, 12);
});

test("equal x and descending x do no harm", () => {
  for (const xs of [
    [2, 2, 2],
    [3, 2, 1],
  ])
    expect(smooth(xs, [1, 2, 3], 0.5).every(Number.isFinite)).toBe(true);
});
