/** Cluster health, polled every few seconds, and since when the gateway has not answered. */

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
  /** When the gateway last answered; the data on the page is as of then. */
  answeredAt: Date | null;
  /** The gateway has not answered for longer than `SILENT_MS`. */
  silent: boolean;
}

const EVERY_MS = 4000;
const AGAIN_MS = 1000;
const PATIENCE_MS = 4000;
/** How long the gateway may stay silent before the page says so; a shorter silence may be a restart. */
const SILENT_MS = 6000;

let seen: Seen = { health: null, answeredAt: null, silent: false };
/** When the first request of the current run of unanswered ones was sent. */
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

/** The latest known health. */
export const useHealth = (): Seen => useSyncExternalStore(watch, () => seen);

/** For callers outside of React. */
export const watchHealth = (watcher: (now: Seen) => void) => watch(() => watcher(seen));
