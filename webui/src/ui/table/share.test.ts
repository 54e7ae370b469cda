import { expect, test } from "vitest";

import { shareOf, stretches } from "./share";

const some = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

test("rendered rows stay, rows out of the window are dropped, and each step adds a few", () => {
  const drawn = new Set(some(0, 40));
  const next = shareOf(drawn, [10, 50], [18, 42]);
  expect([...next].filter((index) => index < 40)).toEqual(some(10, 40));
  expect(next.size).toBe(35);
});

test("visible rows come before those beyond the edge", () => {
  expect([...shareOf(new Set(), [100, 140], [120, 125])]).toEqual(some(120, 125));
});

test("all rows are rendered after a few steps", () => {
  let drawn = new Set<number>();
  for (let step = 0; step < 8; step += 1) drawn = shareOf(drawn, [0, 40], [8, 32]);
  expect(drawn.size).toBe(40);
});

test("rows that are not drawn are told as one stretch, in their place", () => {
  const drawn = new Set([12, 13, 16]);
  expect(stretches(10, 19, (index) => drawn.has(index))).toEqual([
    { from: 10, rows: 2 },
    { from: 12, rows: 0 },
    { from: 13, rows: 0 },
    { from: 14, rows: 2 },
    { from: 16, rows: 0 },
    { from: 17, rows: 2 },
  ]);
  expect(stretches(3, 3, () => true)).toEqual([]);
});
