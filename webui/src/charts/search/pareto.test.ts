import { expect, test } from "vitest";

import { paretoFront } from "./pareto";

const points: [number, number][] = [
  [1, 9],
  [2, 5],
  [2, 7],
  [3, 6],
  [4, 1],
];

test("no point of the front is beaten in both values", () => {
  expect(paretoFront(points, [true, true])).toEqual([0, 1, 4]);
  expect(paretoFront(points, [false, true])).toEqual([4]);
  expect(paretoFront(points, [false, false])).toEqual([4, 3, 2, 0]);
  expect(paretoFront([], [true, true])).toEqual([]);
});
