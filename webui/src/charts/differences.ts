/** What trials, possibly of different experiments, have in common and where they differ. */

import type { Experiment, Trial } from "../api/types";
import { flat } from "../parts/format";

export interface Difference {
  name: string;
  /** One value per trial; undefined if a trial has none. */
  values: unknown[];
  differs: boolean;
}

/** Results, hyperparameters, then the configuration; in each part the rows that differ come first. */
export function differences(experiments: Experiment[], trials: Trial[]): Difference[] {
  const above = new Map(experiments.map((experiment) => [experiment.id, experiment]));
  const results = trials.map((trial) => ({
    ...named("best ", trial.bestValidation?.metrics.avgMetrics ?? {}),
    batches: trial.totalBatchesProcessed,
    restarts: trial.restarts,
  }));
  const hparams = trials.map((trial) => named("", flat(trial.hparams)));
  const configs = trials.map((trial) => {
    const experiment = above.get(trial.experimentId);
    const { hyperparameters: _, ...config } = experiment?.config ?? {};
    return { "experiment name": experiment?.name, "experiment description": experiment?.description, ...named("config ", flat(config)) };
  });
  return [...rows(results), ...rows(hparams), ...rows(configs)];
}

const named = (before: string, values: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [before + name, value]));

function rows(columns: Record<string, unknown>[]): Difference[] {
  const names = [...new Set(columns.flatMap((column) => Object.keys(column)))];
  const rows = names.map((name) => {
    const values = columns.map((column) => column[name]);
    return { name, values, differs: new Set(values.map((value) => JSON.stringify(value))).size > 1 };
  });
  const informative = rows.filter((row) => row.differs || (row.values[0] !== null && row.values[0] !== ""));
  return informative.sort((a, b) => Number(b.differs) - Number(a.differs));
}
