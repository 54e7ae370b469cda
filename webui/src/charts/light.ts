/** The trial under the pointer, which is highlighted in every plot of the page. */

import { useSyncExternalStore } from "react";

let lit: number | null = null;
let next: number | null = null;
const watchers = new Set<(trial: number | null) => void>();

/** Highlights a trial, or none: at most once per frame, however often the pointer moves. */
export function light(trial: number | null) {
  if (next === lit && trial !== lit) requestAnimationFrame(turn);
  next = trial;
}

function turn() {
  if (next === lit) return;
  lit = next;
  watchers.forEach((tell) => tell(lit));
}

/** Calls `tell` whenever another trial is highlighted; returns a function that unsubscribes. */
export const onLit = (tell: (trial: number | null) => void) => {
  watchers.add(tell);
  return () => {
    watchers.delete(tell);
  };
};

export const lighted = () => lit;
/** For components that show the trial as text. Plots use `onLit` instead, which avoids a React render. */
export const useLit = () => useSyncExternalStore(onLit, lighted);
