/** How the cluster is, asked every few seconds; and since when the gateway has not answered. */

import { useSyncExternalStore } from "react";

export interface Reason {
  condition: string;
  about: string;
  program: string;
  message: string;
  since: string;
  action: string;
}

export interface Health {
  status: "up" | "degraded" | "down";
  reasons: Reason[];
}

export interface Seen {
  health: Health | null;
  /** When the gateway last answered: what pages show is as of then. */
  answeredAt: Date | null;
  /** It does not answer, and not for a moment only. */
  silent: boolean;
}

const EVERY_MS = 4000;
const AGAIN_MS = 1000;
const PATIENCE_MS = 4000;
/** For so long it must not have answered: it may be about to be started again. */
const SILENT_MS = 6000;

let seen: Seen = { health: null, answeredAt: null, silent: false };
/** When the first question was asked of those that were not answered. */
let waiting: number | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const watchers = new Set<() => void>();

function tell(now: Seen) {
  seen = now;
  watchers.forEach((watcher) => watcher());
}

async function ask() {
  timer = undefined;
  if (!document.hidden) await look();
  if (watchers.size && timer === undefined) timer = setTimeout(ask, waiting === null ? EVERY_MS : AGAIN_MS);
}

async function look() {
  const asked = Date.now();
  try {
    const answer = await fetch("/api/v1/master/health", { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status >= 500) throw new Error(answer.statusText);
    waiting = null;
    tell({ health: answer.ok ? await answer.json() : null, answeredAt: new Date(), silent: false });
  } catch {
    waiting ??= asked;
    if (Date.now() - waiting >= SILENT_MS) tell({ ...seen, silent: true });
  }
}

function watch(watcher: () => void) {
  watchers.add(watcher);
  if (timer === undefined) timer = setTimeout(ask, 0);
  return () => {
    watchers.delete(watcher);
    if (watchers.size) return;
    clearTimeout(timer);
    timer = undefined;
  };
}

/** What was seen last. */
export const useHealth = (): Seen => useSyncExternalStore(watch, () => seen);

/** For who shows nothing. */
export const watchHealth = (watcher: (now: Seen) => void) => watch(() => watcher(seen));
