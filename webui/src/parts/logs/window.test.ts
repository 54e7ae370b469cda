import { expect, test } from "vitest";

import { before, behind, KEPT, type Line, Recent, rowOf, rowsOf } from "./window";

const line = (id: number, log = `${id}`): Line => ({
  id,
  number: id,
  timestamp: "",
  level: null,
  rankId: null,
  allocationId: null,
  agentId: null,
  source: "task",
  stdtype: "stdout",
  log,
});
const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => line(from + at));

test("a window grows at one end and is cut at the other", () => {
  const held = behind({ lines: lines(0, 1000), atStart: true, atEnd: false }, lines(990, 1400), true);
  expect(held.lines.length).toBe(KEPT);
  expect([held.lines[0]!.id, held.lines.at(-1)!.id, held.atStart, held.atEnd]).toEqual([200, 1399, false, true]);
  const back = before(held, lines(0, 210), true);
  expect([back.lines[0]!.id, back.lines.at(-1)!.id, back.atStart, back.atEnd]).toEqual([0, 1199, true, false]);
});

test("repeated lines become one row", () => {
  const rows = rowsOf([line(1, "a"), line(2, "a"), line(3, "b"), line(4, "a")], { collapse: true });
  expect(rows.map((row) => [row.key, row.kind === "line" && row.times])).toEqual([
    [1, 2],
    [3, 1],
    [4, 1],
  ]);
  expect([0, 1, 2, 3, 9].map((id) => rowOf(rows, id))).toEqual([0, 0, 0, 1, 2]);
});

test("lines that follow from a failure are folded except the first two, and open again", () => {
  const folds = (line: Line) => line.id >= 10 && line.id < 20;
  const rows = rowsOf(lines(8, 22), { folds });
  expect(rows.map((row) => row.key)).toEqual([8, 9, 10, 11, -12, 20, 21]);
  expect(rows[4]!.kind === "fold" && rows[4]!.lines.length).toBe(8);
  expect(rowOf(rows, 15)).toBe(4);
  expect(rowOf(rows, 20)).toBe(5);
  expect(rowsOf(lines(8, 22), { folds, open: new Set([12]) })).toHaveLength(14);
  expect(rowsOf(lines(8, 14), { folds })).toHaveLength(6);
});

test("a traceback that follows is folded as a whole, even after other lines", () => {
  const folds = (line: Line) => line.id >= 10 && line.id < 16;
  const saying = (at: number, text: string) => lines(9, 17).map((line) => (line.id === at ? { ...line, log: text } : line));
  const keys = (given: Line[]) => rowsOf(given, { folds }).map((row) => row.key);
  expect(keys(saying(10, "Traceback (most recent call last):"))).toEqual([9, -10, 16]);
  expect(keys(saying(11, "[rank0]: Traceback (most recent call last):"))).toEqual([9, 10, -11, 16]);
  expect(keys(saying(13, "Traceback (most recent call last):"))).toEqual([9, 10, 11, -12, 16]);
});

test("new lines continue the line numbers if all lines are shown", () => {
  const fresh = [4, 5].map((id) => ({ ...line(id), number: 0 }));
  const held = { lines: lines(1, 4), atStart: true, atEnd: true };
  expect(behind(held, fresh, true, true).lines.map((line) => line.number)).toEqual([1, 2, 3, 4, 5]);
  expect(behind(held, fresh, true).lines.map((line) => line.number)).toEqual([1, 2, 3, 0, 0]);
});

test("recent lines are returned after a line, or null if some were dropped", () => {
  const recent = new Recent(10);
  recent.put(lines(0, 8));
  expect(recent.behind(5)!.map((line) => line.id)).toEqual([6, 7]);
  recent.put(lines(8, 15));
  expect(recent.behind(3)).toBeNull();
  expect(recent.behind(4)!.length).toBe(10);
});
