import { expect, test } from "vitest";

import { importance } from "./importance";

const N = 400;
/** Halton sequence: points that fill the cube evenly. */
const halton = (at: number, base: number) => {
  let [value, part] = [0, 1 / base];
  for (let left = at; left > 0; left = Math.floor(left / base), part /= base) value += part * (left % base);
  return value;
};
const points = Array.from({ length: N }, (_, at) => [halton(at + 1, 2), halton(at + 1, 3), halton(at + 1, 5)]);
const of = (f: (x: number[]) => number) => importance(points, points.map(f));

test("a column that alone decides the metric explains everything", () => {
  const [first, second, third] = of((x) => x[0]! ** 2);
  expect(first).toBeGreaterThan(0.95);
  expect(second! + third!).toBeLessThan(0.05);
});

test("in a weighted sum, each column explains its own variance: 4 to 1", () => {
  const [first, second, third] = of((x) => 2 * x[0]! + x[1]!);
  expect(first).toBeCloseTo(0.8, 1);
  expect(second).toBeCloseTo(0.2, 1);
  expect(third).toBeLessThan(0.03);
});

test("columns that act only together explain little alone", () => {
  const [first, second] = of((x) => (x[0]! < 0.5 === x[1]! < 0.5 ? 1 : 0));
  expect(first! + second!).toBeLessThan(0.4);
});

test("a constant metric, no trials and no columns explain nothing", () => {
  expect(of(() => 3)).toEqual([0, 0, 0]);
  expect(importance([], [])).toEqual([]);
  expect(importance([[], []], [1, 2])).toEqual([]);
});

test("the same trials give the same answer", () => {
  expect(of((x) => Math.sin(6 * x[1]!))).toEqual(of((x) => Math.sin(6 * x[1]!)));
});
