/** What a reader has chosen and hidden of an experiment's trials: in the link, and kept for the next visit. */

import { useCallback, useMemo } from "react";

import { bestOf, type Chosen, choose, drop, NONE, readChosen, recolour, SLOTS, writeChosen } from "./colours";
import { useLink } from "./link";

const kept = (place: string) => {
  try {
    return localStorage.getItem(`chosen.${place}`);
  } catch {
    return null;
  }
};
const keep = (place: string, text: string) => {
  try {
    if (text) localStorage.setItem(`chosen.${place}`, text);
    else localStorage.removeItem(`chosen.${place}`);
  } catch {
    // A browser that keeps nothing still has the link.
  }
};

const numbers = (text: string | null) => new Set((text ?? "").split(",").map(Number).filter(Boolean));

export interface Choice {
  chosen: Chosen;
  hidden: ReadonlySet<number>;
  /** Nobody has chosen: these are the best. */
  byItself: boolean;
  full: boolean;
  toggle: (trial: number) => void;
  recolour: (trial: number, slot: number) => void;
  hide: (trial: number) => void;
  clear: () => void;
  /** Back to the best. */
  reset: () => void;
}

/** `place` names what the choice is of, as `experiment.121`; `ranked` are all trials, the best first, of which `most` are chosen by themselves. */
export function useChosen(place: string, ranked: number[], most?: number): Choice {
  const { params, set } = useLink();
  const [text, away] = [params.get("c") ?? kept(place), params.get("hi")];
  const best = useMemo(() => bestOf(ranked, most), [ranked, most]);
  const told = useMemo(() => readChosen(text), [text]);
  const chosen = told ?? best;
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
      byItself: told === null,
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
    [chosen, hidden, told, change, set],
  );
}
