import { expect, test } from "vitest";

import type { Experiment, Trial } from "../../api/types";
import { rankedOf } from "./compared";

const experiment = (id: number, searcherMetric: string, smaller: boolean) =>
  ({ id, searcherMetric, config: { searcher: { smaller_is_better: smaller } }, labels: [] }) as unknown as Experiment;
const trial = (id: number, experimentId: number, avgMetrics: Record<string, number>) =>
  ({ id, experimentId, state: "STATE_COMPLETED", hparams: {}, bestValidation: { metrics: { avgMetrics } } }) as unknown as Trial;

const loss = experiment(1, "loss", true);
const accuracy = experiment(2, "accuracy", false);
const trials = [trial(10, 1, { loss: 0.3, accuracy: 0.8 }), trial(20, 2, { accuracy: 0.1 }), trial(21, 2, { loss: 0.2, accuracy: 0.9 })];

test("trials of searches for different metrics are in the order of the first search's", () => {
  const ranked = rankedOf({ experiments: [loss, accuracy], trials });
  expect(ranked).toMatchObject({ metric: "loss", smaller: true });
  expect(ranked.trials.map(({ id, value }) => [id, value])).toEqual([
    [21, 0.2],
    [10, 0.3],
    [20, null],
  ]);
});

test("with the other search first, it is its metric and its direction", () => {
  const ranked = rankedOf({ experiments: [accuracy, loss], trials });
  expect(ranked).toMatchObject({ metric: "accuracy", smaller: false });
  expect(ranked.trials.map(({ id }) => id)).toEqual([21, 10, 20]);
});
