import { expect, test } from "vitest";

import { neighbour } from "./roving";

/** Two rows of three controls, and one with a single control at the right. */
const PLACES = [
  { row: 0, x: 10 },
  { row: 0, x: 50 },
  { row: 0, x: 90 },
  { row: 1, x: 12 },
  { row: 1, x: 50 },
  { row: 1, x: 90 },
  { row: 2, x: 90 },
];
const from = (now: number, key: string) => neighbour(PLACES, now, key);

test("left and right stay in the row, and stop at its ends", () => {
  expect(from(0, "ArrowRight")).toBe(1);
  expect(from(1, "ArrowLeft")).toBe(0);
  expect(from(2, "ArrowRight")).toBe(-1);
  expect(from(3, "ArrowLeft")).toBe(-1);
  expect([from(1, "Home"), from(1, "End")]).toEqual([0, 2]);
});

test("up and down lead to what is nearest in the next row", () => {
  expect(from(0, "ArrowDown")).toBe(3);
  expect(from(4, "ArrowUp")).toBe(1);
  expect(from(3, "ArrowDown")).toBe(6);
  expect(from(6, "ArrowDown")).toBe(-1);
  expect(from(0, "ArrowUp")).toBe(-1);
});

test("other keys and other controls do nothing", () => {
  expect(from(0, "Enter")).toBe(-1);
  expect(neighbour(PLACES, -1, "ArrowDown")).toBe(-1);
  expect(neighbour([], 0, "ArrowDown")).toBe(-1);
});
