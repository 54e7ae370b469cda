import { expect, test } from "vitest";

import { grouped, movedTo, ordered, sortedBy } from "./order";
import type { Column } from "./types";

interface Row {
  id: number;
  name: string;
  best: number | null;
}
const rows: Row[] = [
  { id: 1, name: "b10", best: 0.5 },
  { id: 2, name: "b9", best: null },
  { id: 3, name: "a", best: 0.7 },
];
const columns: Column<Row>[] = [
  { id: "name", head: "Name", cell: (row) => row.name, value: (row) => row.name },
  { id: "best", head: "Best", cell: (row) => row.best, value: (row) => row.best },
];
const ids = (rows: Row[]) => rows.map((row) => row.id);

test("numbers in names are compared as numbers", () => {
  expect(ids(ordered(rows, columns, [["name", false]]))).toEqual([3, 2, 1]);
});

test("unknown values come last, in either direction", () => {
  expect(ids(ordered(rows, columns, [["best", false]]))).toEqual([1, 3, 2]);
  expect(ids(ordered(rows, columns, [["best", true]]))).toEqual([3, 1, 2]);
});

test("groups hold their rows, folded groups show none, and indices count rows only", () => {
  const of = (row: Row) => row.name[0]!;
  const items = grouped(rows, of, new Set(["b"])).map((item) => (item.kind === "row" ? item.index : `${item.key} ${item.rows.length}`));
  expect(items).toEqual(["b 2", "a 1", 0]);
});

test("a click on a heading reverses its order; with shift it becomes the next sort key", () => {
  expect(sortedBy([["id", true]], "id", false)).toEqual([["id", false]]);
  expect(sortedBy([["id", true]], "name", true)).toEqual([
    ["id", true],
    ["name", false],
  ]);
});

test("a moved column takes the place of the one that it is dropped on", () => {
  const ids = ["a", "b", "c", "d"];
  expect(movedTo(ids, "a", 2)).toEqual(["b", "c", "a", "d"]);
  expect(movedTo(ids, "d", 0)).toEqual(["d", "a", "b", "c"]);
  expect(movedTo(ids, "a", -1)).toEqual(ids);
  expect(movedTo(ids, "d", 9)).toEqual(ids);
  expect(movedTo(ids, "something else", 1)).toEqual(ids);
});
