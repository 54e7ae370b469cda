/** The trial that the pointer is at: lit in every plot of the page. */

import { useSyncExternalStore } from "react";

let lit: number | null = null;
let next: number | null = null;
const watchers = new Set<(trial: number | null) => void>();

/** Lights a trial, or none: once for each frame, however often the pointer moves. */
export function light(trial: number | null) {
  if (next === lit && trial !== lit) requestAnimationFrame(turn);
  next = trial;
}

function turn() {
  if (next === lit) return;
  lit = next;
  watchers.forEach((tell) => tell(lit));
}

/** Calls back with the trial that is lit whenever that is another one; returns how to stop that. */
export const onLit = (tell: (trial: number | null) => void) => {
  watchers.add(tell);
  return () => {
    watchers.delete(tell);
  };
};

export const lighted = () => lit;
/** For parts that show it in words; what draws it listens to `onLit`, so that React need not look at the page. */
export const useLit = () => useSyncExternalStore(onLit, lighted);
