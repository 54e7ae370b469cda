import { expect, test } from "vitest";

import type { Experiment } from "../../api/types";
import type { Row } from "../../lists/columns";
import { heatOf, readHeat } from "./heat";

const BEST = "searcherMetricsVal";
const row = (id: number, value: number | null, more: Partial<Experiment> = {}, values?: object) =>
  ({ experiment: { id, bestTrialSearcherMetric: value, searcherMetric: "loss", smallerIsBetter: true, ...more }, values }) as Row;

test("the better a value, the stronger its colour, whichever way is better", () => {
  const losses = [row(1, 0.2), row(2, 0.4), row(3, null)];
  expect(losses.map(heatOf(BEST, losses))).toEqual([1, 0, null]);
  const scores = losses.map((loss) => row(loss.experiment.id, loss.experiment.bestTrialSearcherMetric, { smallerIsBetter: false }));
  expect(scores.map(heatOf(BEST, scores))).toEqual([0, 1, null]);
});

test("values of different metrics and of different groups are not compared", () => {
  const rows = [row(1, 0.2), row(2, 0.4), row(3, 900, { searcherMetric: "steps" }), row(4, 0.3, { projectName: "b" })];
  expect(rows.map(heatOf(BEST, rows)).map((share) => share && Math.round(10 * share))).toEqual([10, 0, null, 5]);
  expect(rows.map(heatOf(BEST, rows, ({ experiment }) => experiment.projectName ?? ""))).toEqual([1, 0, null, null]);
});

test("hyperparameters that span decades are coloured on a logarithmic scale", () => {
  const rows = [row(1, 1, {}, { "hp.lr": 1e-4 }), row(2, 1, {}, { "hp.lr": 1e-2 }), row(3, 1, {}, { "hp.lr": 1 })];
  expect(rows.map(heatOf("hp.lr", rows)).map((share) => Math.round(10 * share!))).toEqual([0, 5, 10]);
  expect(heatOf("hp.lr", rows)(row(4, 1, {}, { "hp.lr": "adam" }))).toBeNull();
});

test("the list's own columns can be coloured, too", () => {
  const rows = [row(1, 1, { duration: 10 }), row(2, 1, { duration: 30 })];
  expect(rows.map(heatOf("duration", rows))).toEqual([0, 1]);
});

test("an old link coloured the best value", () => {
  expect(readHeat("1")).toEqual([BEST]);
  expect(readHeat("hp.lr,duration")).toEqual(["hp.lr", "duration"]);
  expect(readHeat(null)).toEqual([]);
});
