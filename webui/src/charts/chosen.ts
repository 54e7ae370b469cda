/** Which trials of an experiment the user has chosen and hidden: in the link, and stored for the next visit. */

import { useCallback, useMemo } from "react";

import { bestOf, type Chosen, choose, drop, NONE, readChosen, recolour, SLOTS, writeChosen } from "./colours";
import { useLink } from "./link";

const placeOf = (experiment: number) => `experiment.${experiment}`;
const stored = (place?: string) => {
  try {
    return place === undefined ? null : localStorage.getItem(`chosen.${place}`);
  } catch {
    return null;
  }
};
const keep = (place: string | undefined, text: string) => {
  if (place === undefined) return;
  try {
    if (text) localStorage.setItem(`chosen.${place}`, text);
    else localStorage.removeItem(`chosen.${place}`);
  } catch {
    // Without storage, the link still holds the choice.
  }
};

const numbers = (text: string | null) => new Set((text ?? "").split(",").map(Number).filter(Boolean));

export interface Choice {
  chosen: Chosen;
  hidden: ReadonlySet<number>;
  /** The user has chosen nothing, so these are the best trials. */
  byItself: boolean;
  full: boolean;
  toggle: (trial: number) => void;
  recolour: (trial: number, slot: number) => void;
  hide: (trial: number) => void;
  clear: () => void;
  /** Goes back to the best trials. */
  reset: () => void;
}

/** The trials of an experiment; `ranked` holds all of them, best first. By default, the best are chosen. */
export function useChosen(experiment: number, ranked: number[]): Choice {
  const best = useMemo(() => bestOf(ranked), [ranked]);
  return useChoice(best, placeOf(experiment));
}

/** The trials that have a colour on the page of their experiment, of which the best are known. */
export const chosenOf = (experiment: number, best: number[]): Chosen => readChosen(stored(placeOf(experiment))) ?? bestOf(best);

/** Without a `place` to keep it, the choice is in the link alone. */
export function useChoice(byDefault: Chosen, place?: string): Choice {
  const { params, set } = useLink();
  const [text, away] = [params.get("c") ?? stored(place), params.get("hi")];
  const fromLink = useMemo(() => readChosen(text), [text]);
  const chosen = fromLink ?? byDefault;
  const hidden = useMemo(() => numbers(away), [away]);
  const change = useCallback(
    (next: Chosen | null) => {
      const written = next ? writeChosen(next) : "";
      keep(place, written);
      set({ c: written });
    },
    [place, set],
  );
  return useMemo(
    () => ({
      chosen,
      hidden,
      byItself: fromLink === null,
      full: chosen.size >= SLOTS,
      toggle: (trial) => change(chosen.has(trial) ? drop(chosen, trial) : choose(chosen, trial)),
      recolour: (trial, slot) => change(recolour(chosen, trial, slot)),
      hide: (trial) => {
        const next = new Set(hidden);
        if (!next.delete(trial)) next.add(trial);
        set({ hi: [...next].join(",") });
      },
      clear: () => change(NONE),
      reset: () => change(null),
    }),
    [chosen, hidden, fromLink, change, set],
  );
}
