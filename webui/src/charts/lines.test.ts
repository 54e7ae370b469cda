import { expect, test } from "vitest";

import { toCsv } from "./export";
import { grouped } from "./grouped";
import { clipped, extent, nearest, TICK_PX, tickSpace, toLines } from "./lines";
import { readRange, writeRange } from "./link";
import type { Series } from "./series";
import { spread, SvgPen, scaleTo, trace, traceBand } from "./trace";

const series = (more: Partial<Series> = {}): Series => ({
  trialId: 1,
  group: "training",
  name: "loss",
  count: 3,
  nonFinite: 0,
  raw: true,
  x: [1, 2, 3],
  batches: [1, 2, 3],
  last: [4, 2, 1],
  ...more,
});
const bucketed = series({ raw: false, min: [0, 1, 1], max: [9, 3, 1], mean: [4, 2, 1], counts: [5, 2, 1], gaps: [0, 1, 0], nonFinite: 1 });
const trials = [{ id: 1, startTime: "1970-01-01T00:00:01Z" }];
const plain = { weight: 0 };

test("a line has the values, and the time since its trial's start if asked for", () => {
  const [line] = toLines([series()], trials, plain);
  expect(line).toMatchObject({ label: "training", xs: [1, 2, 3], ys: [4, 2, 1], low: null, pale: null, gaps: [0, 0, 0] });
  expect(toLines([series()], trials, { ...plain, sinceStart: true })[0]!.xs).toEqual([0, 1, 2]);
});

test("with smoothing, the original values remain as a pale line", () => {
  const [line] = toLines([series()], trials, { weight: 0.5 });
  expect(line!.pale).toEqual([4, 2, 1]);
  expect(line!.ys[0]).toBe(4);
  expect(line!.ys[2]).toBeGreaterThan(1);
});

test("groups differ by dash, trials by colour and name", () => {
  const two = [...trials, { id: 2, startTime: "1970-01-01T00:00:01Z", label: "3 / 2" }];
  const lines = toLines([series(), series({ group: "validation" }), series({ trialId: 2 }), series({ trialId: 9 })], two, plain);
  expect(lines.map((line) => line.label)).toEqual(["trial 1 training", "trial 1 validation", "3 / 2 training"]);
  expect(lines[0]!.dash).not.toEqual(lines[1]!.dash);
  expect(new Set(lines.map((line) => line.colour))).toEqual(new Set(["--s-rest"]));
  const look = { colour: "--s7", dash: [6, 3], front: true, why: "chosen" };
  const chosen = toLines([series(), series({ trialId: 2 })], two, plain, new Map([[1, look]]));
  expect(chosen.map((line) => [line.trial, line.colour, line.dash, line.short])).toEqual([
    [2, "--s-rest", [], "2"],
    [1, "--s7", [6, 3], "1"],
  ]);
});

test("what machines report begins with the first colour, and is called without its prefix", () => {
  const of = (...groups: string[]) =>
    toLines(
      groups.map((group) => series({ group })),
      trials,
      plain,
    ).map(({ label, colour }) => [label, colour]);
  expect(of("profile.process")).toEqual([["process", "--s1"]]);
  expect(of("training", "profile.system")).toEqual([
    ["training", "--s1"],
    ["system", "--s3"],
  ]);
});

test("the axes cover the extremes if they are shown, and a logarithmic axis only positive values", () => {
  const lines = toLines([bucketed], trials, plain);
  expect(extent(lines, false, true)!.y[1]).toBeGreaterThan(9);
  expect(extent(lines, false, false)!.y[1]).toBeLessThan(9);
  expect(extent(lines, true, true)!.y[0]).toBeGreaterThan(0);
  expect(extent([], false, true)).toBeNull();
  const same = extent(toLines([series({ last: [2, 2, 2] })], trials, plain), false, true)!;
  expect(same.y[0]).toBeLessThan(2);
});

test("the nearest point is found from both sides", () => {
  expect([-1, 1.4, 1.6, 99].map((x) => nearest([0, 1, 2, 3], x))).toEqual([0, 1, 2, 3]);
  expect(nearest([], 1)).toBe(-1);
});

test("a line breaks at a gap, and a single point is still visible", () => {
  const pen = new SvgPen();
  const same = (value: number) => value;
  trace(pen, [0, 1, 2, 3, 4], [1, 1, null, 5, null], same, same);
  expect(String(pen)).toBe("M0.00,1.00L1.00,1.00M3.00,5.00L3.50,5.00");
});

test("a band has one part per stretch without a gap", () => {
  const [line] = toLines([series({ ...bucketed, min: [0, null, 1], max: [9, null, 1] })], trials, plain);
  const pen = new SvgPen();
  traceBand(
    pen,
    line!,
    (x) => x,
    (y) => y,
  );
  expect(String(pen).match(/M/g)).toHaveLength(2);
});

test("on a logarithmic scale, 10 is halfway between 1 and 100", () => {
  expect(scaleTo([1, 100], 0, 200, true)(10)).toBeCloseTo(100, 9);
  expect(scaleTo([0, 10], 100, 0)(2.5)).toBe(75);
});

test("labels keep their distance and stay inside", () => {
  const places = spread([10, 11, 12, 99], 10, 0, 100);
  const sorted = [...places].sort((a, b) => a - b);
  sorted.slice(1).forEach((place, at) => expect(place - sorted[at]!).toBeGreaterThanOrEqual(10));
  expect(Math.max(...places)).toBeLessThanOrEqual(100);
});

test("an exported table has every column, and quotes cells that need it", () => {
  const lines = toLines([series({ ...bucketed, group: 'a,"b"' })], trials, plain);
  expect(toCsv(lines, "batches").split("\n").slice(0, 2)).toEqual([
    "trial,group,metric,batches,last,min,max,mean,count,non_finite",
    '1,"a,""b""",loss,1,4,0,9,4,5,0',
  ]);
  const hostile = toLines([series({ ...bucketed, group: "=cmd()" })], trials, plain);
  expect(toCsv(hostile, "batches").split("\n")[1]).toBe("1,'=cmd(),loss,1,4,0,9,4,5,0");
  expect(toCsv(lines, "epoch").startsWith("trial,group,metric,epoch,batches,last,")).toBe(true);
});

test("an address holds one range or none", () => {
  expect(readRange(writeRange([0.5, 2e6]))).toEqual([0.5, 2e6]);
  for (const text of [null, "", "1", "2..1", "a..b", "1..2..3"]) expect(readRange(text)).toBeNull();
});

test("a group is the mean of its trials in the band of their extremes", () => {
  const two = [...trials, { id: 2, startTime: "1970-01-01T00:00:01Z" }];
  const lines = toLines([series(), series({ trialId: 2, x: [1, 3], last: [0, 2], batches: [1, 3] })], two, plain);
  const [line] = grouped(lines, () => ({ name: "relu", colour: "--s1", dash: [] }));
  expect(line).toMatchObject({ label: "relu (2)", xs: [1, 2, 3], ys: [2, 1.5, 1.5], low: [0, 1, 1], high: [4, 2, 2], front: true });
  expect(grouped(lines, (trial) => (trial === 1 ? null : { name: "x", colour: "--s1", dash: [] }))[0]!.ys).toEqual([0, 2]);
});

test("outliers are clipped only if there are enough values", () => {
  const last = Array.from({ length: 200 }, (_, at) => (at === 7 ? 1e6 : at / 200));
  const x = last.map((_, at) => at);
  const lines = toLines([series({ x, last, batches: x })], trials, plain);
  expect(clipped(lines, false)![1]).toBeLessThan(1);
  expect(clipped(toLines([series()], trials, plain), false)).toBeNull();
});

test("ticks stand closer in narrow charts, and never closer than their texts", () => {
  expect(tickSpace("80", 1000)).toBe(TICK_PX);
  expect(tickSpace("80", 150)).toBeLessThan(150 / 4);
  expect(tickSpace("1.25m", 150)).toBeGreaterThan(5 * 6.4);
});
