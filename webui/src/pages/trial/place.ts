/** How a trial stands among the others of its search. */

import { useMemo } from "react";

import { useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { bestFirst, isSmaller, bestValueOf } from "../experiment/listed";
import { useRungs } from "../experiment/decided";

export interface Place {
  /** 1 for the best; 0 where it has no value. */
  rank: number;
  of: number;
  /** As `1st of the search, passed 3 of 3 rungs` */
  words: string;
  /** Neighbours by id. */
  before?: number;
  after?: number;
  /** The best ones. */
  best: number[];
  /** How far the next one is behind, or the one above ahead. */
  against: { id: number; by: number } | null;
  /** The search closed it. */
  stopped: boolean;
  /** Lengths of the rungs that it passed. */
  passed: number[];
}

const REST_MS = 5000;
const NONE: Place = { rank: 0, of: 0, words: "", best: [], against: null, stopped: false, passed: [] };

const ENDS = ["th", "st", "nd", "rd"];
export const nth = (place: number) => {
  const last = place % 100;
  return `${place.toLocaleString("en")}${ENDS[(last - 20) % 10] ?? ENDS[last] ?? ENDS[0]}`;
};

export function usePlaceOf(trial: Trial, one: Experiment | undefined): Place {
  const topic = `experiment.${trial.experimentId}`;
  const found = useData<{ trials: Trial[] }>(
    one && one.numTrials > 1 ? `experiments/${one.id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&lean=true` : null,
    [topic],
    false,
    REST_MS,
  );
  const { brackets, decided } = useRungs(one, [topic]);
  return useMemo(() => {
    if (!one || !found.data) return NONE;
    const all = found.data.trials
      .map((each) => ({ id: each.id, value: bestValueOf(each, one.searcherMetric) }))
      .sort(bestFirst(isSmaller(one)));
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
    const words = [rank ? `${nth(rank)} of ${all.length.toLocaleString("en")}` : "", decision ?? ""].filter(Boolean).join(", ");
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
  }, [one, found.data, brackets, decided, trial.id]);
}
