/** Trials as needed by lists, legends and colours. */

import { useMemo } from "react";

import type { Experiment, Trial } from "../../api/types";
import type { Listed } from "../../charts/trials";
import { flat, stateName } from "../../parts/format";

export const bestValueOf = (trial: Trial, metric: string): number | null => {
  const value = trial.bestValidation?.metrics.avgMetrics[metric];
  return typeof value === "number" ? value : null;
};

export const bestFirst = (smaller: boolean) => (a: { value: number | null; id: number }, b: { value: number | null; id: number }) =>
  a.value === null || b.value === null
    ? Number(a.value === null) - Number(b.value === null) || a.id - b.id
    : (smaller ? a.value - b.value : b.value - a.value) || a.id - b.id;

export const isSmaller = (experiment: Experiment) => experiment.config.searcher?.smaller_is_better !== false;

/** `metric` is the experiment's own, unless trials of several experiments are put in one order. */
export function listed(trial: Trial, experiment: Experiment | undefined, stopped: boolean, metric = experiment?.searcherMetric): Listed {
  return {
    id: trial.id,
    experimentId: trial.experimentId,
    state: stopped ? "STOPPED" : stateName(trial.state),
    hparams: flat(trial.hparams),
    value: metric ? bestValueOf(trial, metric) : null,
    tags: experiment?.labels ?? [],
    batches: trial.totalBatchesProcessed,
  };
}

/** Best first. Returns the same array until something visible changes. */
export function useListed(experiment: Experiment, trials: Trial[], stopped: ReadonlySet<number>): Listed[] {
  const smaller = isSmaller(experiment);
  const made = trials.map((trial) => listed(trial, experiment, stopped.has(trial.id))).sort(bestFirst(smaller));
  const key = JSON.stringify(made);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the result depends on the serialized content alone
  return useMemo(() => made, [key]);
}

/** Labels of the colour modes: only properties that differ between the trials. */
export function waysOf(trials: Listed[], metric: string): [string, string][] {
  if (trials.length < 2) return [];
  const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.hparams)))];
  const differs = (read: (trial: Listed) => unknown) => new Set(trials.map((trial) => JSON.stringify(read(trial)))).size > 1;
  return [
    ["", "chosen trials"],
    ["metric", metric || "metric"],
    ["state", "state"],
    ...(differs((trial) => trial.experimentId) ? [["experiment", "experiment"] as [string, string]] : []),
    ...(differs((trial) => trial.tags) ? [["tag", "tag"] as [string, string]] : []),
    ...names.filter((name) => differs((trial) => trial.hparams[name])).map((name): [string, string] => [`hp.${name}`, name]),
  ];
}
