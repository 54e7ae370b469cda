import { expect, test } from "vitest";

import type { Column } from "./types";
import { fitted, wishOf } from "./widths";

const column = (more: Partial<Column<unknown>>): Column<unknown> => ({ id: "x", head: "X", cell: () => null, ...more });
const id = wishOf(column({ width: 56 }), undefined);
const name = wishOf(column({ name: true }), undefined);
const metric = wishOf(column({ width: 104, least: 84, most: 200 }), undefined);
const sum = (widths: number[]) => widths.reduce((all, width) => all + width, 0);

test("columns with a least width are narrowed before the table scrolls", () => {
  const widths = fitted([id, name, metric], 330);
  expect(widths[0]).toBe(56);
  expect(widths[1]).toBeLessThan(220);
  expect(widths[2]).toBeLessThan(104);
  expect(sum(widths)).toBeLessThanOrEqual(330);
});

test("no column is narrower than its least width, however small the room", () => {
  expect(fitted([id, name, metric], 100)).toEqual([56, 150, 84]);
});

test("cut columns get room before the name gets what is left", () => {
  const some = fitted([id, name, metric], 480);
  expect(some[2]).toBeGreaterThan(130);
  expect(sum(some)).toBe(480);
  expect(fitted([id, name, metric], 1000)).toEqual([56, 744, 200]);
});

test("a long heading is shown whole where there is room", () => {
  const long = wishOf(column({ width: 104, num: true, head: "Best validation_accuracy" }), undefined);
  expect(long.most).toBeGreaterThan(190);
  expect(fitted([id, name, long], 1000)[2]).toBe(long.most);
});

test("a heading is shown whole before other columns get more room for their cells", () => {
  const long = wishOf(column({ width: 104, num: true, head: "validation_accuracy" }), undefined);
  const [first, second] = fitted([name, long], 220 + long.head);
  expect(second).toBe(long.head);
  expect(first).toBe(220);
});

test("a width that the user chose stays", () => {
  const own = wishOf(column({ width: 104, least: 84, most: 200 }), 130);
  expect(fitted([id, name, own], 1000)[2]).toBe(130);
  expect(fitted([id, name, own], 200)[2]).toBe(130);
});
