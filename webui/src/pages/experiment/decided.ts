/** What the search decided about its trials. */

import { useMemo } from "react";

import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { lengthOf } from "./lengths";
import { type Brackets, decisions } from "../../charts/search/rungs";

const REST_MS = 2000;
const NO_BRACKETS: Brackets = [];

/** Empty for a search without rungs. */
export function useRungs(experiment: Experiment | undefined, topics: string[]) {
  const halving = /halving|asha/.test(experiment?.searcherType ?? "");
  const answer = useData<{ brackets: Brackets }>(halving ? `experiments/${experiment!.id}/rungs` : null, topics, false, REST_MS);
  const brackets = answer.data?.brackets ?? NO_BRACKETS;
  // A plain number counts in the script's own unit.
  const { unit } = lengthOf(experiment?.config.searcher?.max_length);
  return useMemo(() => ({ brackets, decided: decisions(brackets, unit) }), [brackets, unit]);
}
