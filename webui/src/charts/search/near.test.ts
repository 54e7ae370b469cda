import { expect, test } from "vitest";

import { nearestLine, nearestSpot } from "./near";

const of = (...values: number[]) => Float64Array.from(values);
const all = () => false;

test("the nearest of several spots within reach", () => {
  const [xs, ys] = [of(0, 0.5, 1), of(0, 0.5, 1)];
  const at = (x: number, y: number) => nearestSpot(xs, ys, [10, 110], [200, 100], x, y, 10);
  expect(at(10, 200)).toBe(0);
  expect(at(62, 148)).toBe(1);
  expect(at(110, 91)).toBe(2);
  expect(at(80, 150)).toBe(-1);
});

test("a value without a position on the axis is never found", () => {
  expect(nearestSpot(of(NaN, 0), of(0, NaN), [0, 100], [100, 0], 0, 100, 50)).toBe(-1);
});

test("the nearest line between the two axes around the pointer", () => {
  // One line rises, one falls, and one has no value on the second axis.
  const columns = [of(0, 1, 0.5), of(1, 0, NaN), of(1, 0, 0.5)];
  const at = (x: number, y: number, skip: (at: number) => boolean = all) => nearestLine(columns, [0, 100, 200], [100, 0], x, y, 8, skip);
  expect(at(25, 90)).toBe(0);
  expect(at(25, 12)).toBe(1);
  expect(at(25, 50)).toBe(-1);
  expect(at(150, 4)).toBe(0);
  expect(at(100, 97)).toBe(1);
  expect(at(150, 4, (index) => index === 0)).toBe(-1);
  expect(at(-5, 100)).toBe(-1);
  expect(at(205, 0)).toBe(-1);
});
