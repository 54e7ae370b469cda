import { expect, test } from "vitest";

import type { Trial } from "../../api/types";
import { axisOf, fits, placeOf, readBrushes, ticksOf, valueAt, writeBrushes } from "./axes";
import { bestSoFar, histogram, hyperparameters, looksSame, ranks, type Row, toRows } from "./rows";

const trial = (id: number, hparams: Record<string, unknown>, second = id) =>
  ({
    id,
    hparams,
    state: id === 3 ? "STATE_ERROR" : "STATE_COMPLETED",
    totalBatchesProcessed: 8,
    bestValidation: { endTime: new Date(second * 1000).toISOString(), totalBatches: 8, metrics: { avgMetrics: {} } },
  }) as unknown as Trial;
const trials = [
  trial(1, { lr: 0.001, net: { kind: "a" } }),
  trial(2, { lr: 0.1, net: { kind: "b" } }, 9),
  trial(3, { lr: 1, net: { kind: "a" } }),
];
const rows = toRows(
  trials,
  new Map([
    [1, 5],
    [2, 2],
    [3, 5],
  ]),
  new Map(),
  true,
);

test("rows are trials with a value, best first, with nested names", () => {
  expect(rows.map((row) => row.trial.id)).toEqual([2, 1, 3]);
  expect(rows[0]!.hp).toEqual({ lr: 0.1, "net.kind": "b" });
  expect(rows.map((row) => row.ending)).toEqual(["", "", "failed"]);
  expect(toRows(trials, new Map([[1, null]]), new Map(), true)).toEqual([]);
});

test("rows look the same until something visible changes", () => {
  const again = toRows(
    trials.map((trial) => ({ ...trial, restarts: 7, hparams: { ...trial.hparams } })),
    new Map([
      [1, 5],
      [2, 2],
      [3, 5],
    ]),
    new Map(),
    true,
  );
  expect(looksSame(rows, again)).toBe(true);
  expect(looksSame(rows, again.slice(1))).toBe(false);
  for (const change of [{ value: 4 }, { at: 1 }, { ending: "stopped" as const }, { trial: { ...trials[1]!, hparams: {} }, hp: {} }])
    expect(looksSame(rows, [{ ...again[0]!, ...change }, ...again.slice(1)])).toBe(false);
});

test("hyperparameters that never differ come last", () => {
  const more = rows.map((row) => ({ ...row, hp: { same: 1, ...row.hp } }));
  expect(hyperparameters(more)).toEqual([
    { name: "lr", varies: true },
    { name: "net.kind", varies: true },
    { name: "same", varies: false },
  ]);
});

test("a wide range is logarithmic unless set otherwise, and positions map back to values", () => {
  const lr = (row: Row) => row.hp.lr;
  const axis = axisOf("lr", rows, lr);
  expect(axis.log).toBe(true);
  expect(axisOf("lr", rows, lr, "linear").log).toBe(false);
  expect(placeOf(axis, rows[0]!)).toBeCloseTo(2 / 3, 12);
  expect(valueAt(axis, 2 / 3)).toBeCloseTo(0.1, 12);
});

test("kinds are spread evenly, and a single one is in the middle", () => {
  const axis = axisOf("net.kind", rows, (row) => row.hp["net.kind"]);
  expect(ticksOf(axis)).toEqual([
    [0, "a"],
    [1, "b"],
  ]);
  expect(
    placeOf(
      axisOf("x", rows, () => "only"),
      rows[0]!,
    ),
  ).toBe(0.5);
  expect(placeOf(axis, { ...rows[0]!, hp: {} })).toBeNull();
});

test("brushes select rows and survive the round trip through the address", () => {
  const axes = new Map([["lr", axisOf("lr", rows, (row) => row.hp.lr)]]);
  const brushes = [
    { name: "a~odd!name", from: 0, to: 1 },
    { name: "lr", from: 0.01, to: 0.5 },
  ];
  expect(rows.filter((row) => fits(row, brushes, axes)).map((row) => row.trial.id)).toEqual([2]);
  expect(readBrushes(writeBrushes(brushes))).toEqual([
    { name: "a~odd!name", from: 0, to: 1 },
    { name: "lr", from: 0.01, to: 0.5 },
  ]);
  expect(readBrushes("nonsense!~!lr~x~2")).toEqual([]);
});

test("the best so far depends on time and direction", () => {
  expect(bestSoFar(rows, true).map((row) => row.trial.id)).toEqual([1, 2]);
  expect(bestSoFar(rows, false).map((row) => row.trial.id)).toEqual([1]);
});

test("equal values share their rank", () => {
  expect(Object.fromEntries(ranks(rows))).toEqual({ 2: 0, 1: 0.75, 3: 0.75 });
});

test("a histogram counts every value once", () => {
  const values = Array.from({ length: 100 }, (_, at) => at);
  expect(histogram(values).reduce((sum, bin) => sum + bin.count, 0)).toBe(100);
  expect(histogram([2, 2])).toEqual([{ from: 2, to: 3, count: 2 }]);
  expect(histogram([])).toEqual([]);
});
