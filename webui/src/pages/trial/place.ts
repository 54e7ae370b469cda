/** How a trial ranks among the others of its search. */

import { useMemo } from "react";

import { useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { bestFirst, isSmaller, bestValueOf } from "../experiment/listed";
import { nth, number } from "../../parts/format";
import { useRungs } from "../experiment/decided";

export interface Place {
  /** 1 for the best; 0 if it has no value. */
  rank: number;
  of: number;
  /** Such as `2nd best of 14 trials`, and the decision of the search, such as `stopped after 4 epochs, 6th of 8`. */
  words: string[];
  /** Neighbours by id. */
  before?: number;
  after?: number;
  /** Ids of the best trials. */
  best: number[];
  /** For the best trial, its lead over the second; otherwise, its distance from the best. */
  against: { id: number; by: number } | null;
  /** The search closed it. */
  stopped: boolean;
  /** Lengths of the rungs that it passed. */
  passed: number[];
}

const REST_MS = 5000;
const NONE: Place = { rank: 0, of: 0, words: [], best: [], against: null, stopped: false, passed: [] };

export function usePlaceOf(trial: Trial, experiment: Experiment | undefined): Place {
  const topic = `experiment.${trial.experimentId}`;
  const answer = useData<{ trials: Trial[] }>(
    experiment && experiment.numTrials > 1 ? `experiments/${experiment.id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&lean=true` : null,
    [topic],
    false,
    REST_MS,
  );
  const { brackets, decided } = useRungs(experiment, [topic]);
  return useMemo(() => {
    if (!experiment || !answer.data) return NONE;
    const all = answer.data.trials
      .map((each) => ({ id: each.id, value: bestValueOf(each, experiment.searcherMetric) }))
      .sort(bestFirst(isSmaller(experiment)));
    const ids = all.map((each) => each.id).sort((a, b) => a - b);
    const at = all.findIndex((each) => each.id === trial.id);
    const mine = all[at]?.value ?? null;
    const rank = mine === null ? 0 : at + 1;
    const other = rank === 1 ? all[1] : all[0];
    const rungs = brackets.find((bracket) => bracket.some((rung) => rung.entries.some((entry) => entry.trialId === trial.id))) ?? [];
    const passed = rungs.flatMap((rung) =>
      rung.entries.some((entry) => entry.trialId === trial.id && entry.verdict === "promoted") ? [rung.length] : [],
    );
    const decision = decided.get(trial.id)?.text;
    const words = [rank > 1 ? `${nth(rank)} best of ${number(all.length)} trials` : "", decision ?? ""].filter(Boolean);
    return {
      rank,
      of: all.length,
      words,
      before: ids[ids.indexOf(trial.id) - 1],
      after: ids[ids.indexOf(trial.id) + 1],
      best: all.map((each) => each.id),
      against: mine !== null && other?.value != null ? { id: other.id, by: Math.abs(mine - other.value) } : null,
      stopped: decided.get(trial.id)?.ending === "stopped",
      passed,
    };
  }, [experiment, answer.data, brackets, decided, trial.id]);
}
