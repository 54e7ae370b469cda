import { useQueries } from "@tanstack/react-query";

import { question, useAgain } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";

const REST_MS = 1000;

export interface Found {
  experiments: Experiment[];
  trials: Trial[];
  errors: unknown[];
  pending: boolean;
}

/** The experiments and trials to compare; trials of one experiment stay together. */
export function useCompared(experiments: number[], trials: number[], each: number): Found {
  const best = (id: number) => `experiments/${id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&lean=true&limit=${each}`;
  const asked = useQueries({ queries: trials.map((id) => question<{ trial: Trial }>(`trials/${id}`)) });
  const listed = useQueries({ queries: experiments.map((id) => question<{ trials: Trial[] }>(best(id))) });
  const trialsFound = [...asked.map((one) => one.data && [one.data.trial]), ...listed.map((one) => one.data?.trials)];
  const found = new Map(trialsFound.flatMap((some) => some ?? []).map((trial) => [trial.id, trial]));
  const all = [...new Set([...experiments, ...[...found.values()].map((one) => one.experimentId)])];
  const above = useQueries({ queries: all.map((id) => question<{ experiment: Experiment }>(`experiments/${id}`)) });
  const topics = all.flatMap((id) => [`experiment.${id}`, `experiment.${id}.series`]);
  const paths = [...trials.map((id) => `trials/${id}`), ...experiments.map(best), ...all.map((id) => `experiments/${id}`)];
  useAgain(
    topics,
    paths.map((path) => [path]),
    REST_MS,
  );
  const every = [...asked, ...listed, ...above];
  return {
    experiments: above.flatMap((one) => (one.data ? [one.data.experiment] : [])),
    trials: [...found.values()],
    errors: every.flatMap((one) => (one.error && !one.data ? [one.error] : [])),
    pending: every.some((one) => one.isPending && !one.error),
  };
}
