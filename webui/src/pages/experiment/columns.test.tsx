import { expect, test } from "vitest";

import type { Experiment, Trial } from "../../api/types";
import { columnsOf, hyperparametersOf } from "./columns";

const trial = (id: number, hparams: Record<string, unknown>) => ({ id, hparams }) as unknown as Trial;
const trials = [trial(1, { lr: 0.0026812345, dropout: 0.1, seed: 7 }), trial(2, { lr: 0.00025123456, dropout: 0.25, seed: 7 })];
const names = hyperparametersOf(trials);
const experiment = { id: 1, searcherMetric: "loss" } as unknown as Experiment;
const columns = columnsOf({ experiment, names, decided: new Map(), chosen: new Map() });
const cells = (name: string) => trials.map((each) => columns.find(({ id }) => id === `hp.${name}`)!.cell(each));

test("what differs comes first", () => {
  expect(names.map(({ name, varies }) => [name, varies])).toEqual([
    ["lr", true],
    ["dropout", true],
    ["seed", false],
  ]);
});

test("a latest value that is not a number is told, and has no place in the order", () => {
  const diverged = { id: 3, hparams: {}, latestValidation: { metrics: { avgMetrics: { loss: "NaN" } } } } as unknown as Trial;
  const latest = columns.find(({ id }) => id === "latest")!;
  expect([latest.cell(diverged), latest.value!(diverged)]).toEqual(["NaN", null]);
  expect(latest.cell(trials[0]!)).toBe("");
});

test("sampled numbers of a column have equally many digits; those that somebody wrote stay as written", () => {
  expect(cells("lr")).toEqual(["0.002681", "2.51e-4"]);
  expect(cells("dropout")).toEqual(["0.1", "0.25"]);
  expect(cells("seed")).toEqual(["7", "7"]);
});
