import { useQueries } from "@tanstack/react-query";

import { question, useAgain } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { chosenOf } from "../../charts/chosen";
import { BEST, type Chosen, inCommon } from "../../charts/colours";
import type { Listed } from "../../charts/trials";
import { bestFirst, isSmaller, listed } from "../experiment/listed";

const REST_MS = 1000;

export interface Found {
  experiments: Experiment[];
  trials: Trial[];
  /** The best trials of each experiment, by its id: those that have colours on its page by default. */
  best: ReadonlyMap<number, number[]>;
  errors: unknown[];
  pending: boolean;
}

/** The experiments, by their `each` best trials, and trials to compare; trials of one experiment stay together. */
export function useCompared(experiments: number[], trials: number[], each: number): Found {
  const ranked = (id: number) => `experiments/${id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&lean=true&limit=${Math.max(each, BEST)}`;
  const asked = useQueries({ queries: trials.map((id) => question<{ trial: Trial }>(`trials/${id}`)) });
  const single = asked.flatMap((answer) => (answer.data ? [answer.data.trial] : []));
  const all = [...new Set([...experiments, ...single.map((trial) => trial.experimentId)])];
  const listed = useQueries({ queries: all.map((id) => question<{ trials: Trial[] }>(ranked(id))) });
  const above = useQueries({ queries: all.map((id) => question<{ experiment: Experiment }>(`experiments/${id}`)) });
  const topics = all.flatMap((id) => [`experiment.${id}`, `experiment.${id}.series`]);
  const paths = [...trials.map((id) => `trials/${id}`), ...all.flatMap((id) => [ranked(id), `experiments/${id}`])];
  useAgain(
    topics,
    paths.map((path) => [path]),
    REST_MS,
  );
  const best = all.map((id, at) => [id, listed[at]!.data?.trials ?? []] as const);
  const shown = best.flatMap(([id, some]) => (experiments.includes(id) ? some.slice(0, each) : []));
  const every = [...asked, ...listed, ...above];
  return {
    experiments: above.flatMap((answer) => (answer.data ? [answer.data.experiment] : [])),
    trials: [...new Map([...single, ...shown].map((trial) => [trial.id, trial])).values()],
    best: new Map(best.map(([id, some]) => [id, some.map((trial) => trial.id)])),
    errors: every.flatMap((answer) => (answer.error && !answer.data ? [answer.error] : [])),
    pending: every.some((answer) => answer.isPending && !answer.error),
  };
}

export interface Ranked {
  metric: string;
  smaller: boolean;
  /** Best first. */
  trials: Listed[];
}

/** All trials by the metric of the first experiment: values of different metrics have no common order. */
export function rankedOf({ experiments, trials }: Pick<Found, "experiments" | "trials">): Ranked {
  const above = new Map(experiments.map((experiment) => [experiment.id, experiment]));
  const [first] = experiments;
  const [metric, smaller] = [first?.searcherMetric ?? "", first ? isSmaller(first) : true];
  const ranked = trials.map((trial) => listed(trial, above.get(trial.experimentId), false, metric)).sort(bestFirst(smaller));
  return { metric, smaller, trials: ranked };
}

/** The colours of compared trials, `ranked` best first, unless the user chooses others. */
export const coloursOf = ({ best }: Pick<Found, "best">, ranked: number[]): Chosen =>
  inCommon(
    [...best].map(([experiment, some]) => chosenOf(experiment, some)),
    ranked,
  );
