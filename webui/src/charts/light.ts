/** The trial that the pointer is at: lit in every plot of the page. */

import { useSyncExternalStore } from "react";

let lit: number | null = null;
const watchers = new Set<() => void>();

export function light(trial: number | null) {
  if (trial === lit) return;
  lit = trial;
  watchers.forEach((tell) => tell());
}

const watch = (tell: () => void) => {
  watchers.add(tell);
  return () => watchers.delete(tell);
};

export const lighted = () => lit;
export const useLit = () => useSyncExternalStore(watch, lighted);
