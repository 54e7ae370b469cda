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
  /** How long the oldest event has waited for this gateway to read and save it. */
  lateSeconds: number;
}

export interface Seen {
  health: Health | null;
  /** When the gateway last answered; the data on the page is as of then. */
  answeredAt: Date | null;
  /** A request has not been answered for longer than `SILENT_MS`. */
  silent: boolean;
}

const EVERY_MS = 2000;
const AGAIN_MS = 1000;
const PATIENCE_MS = 4000;
/** How long a request may stay unanswered before the page says so: within 5 s of the last answer. A shorter silence may
 * be a restart. */
const SILENT_MS = 2500;

let seen: Seen = { health: null, answeredAt: null, silent: false };
/** Runs from the first of the current run of unanswered requests. */
let silence: ReturnType<typeof setTimeout> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
const watchers = new Set<() => void>();

function tell(now: Seen) {
  seen = now;
  watchers.forEach((watcher) => watcher());
}

async function ask() {
  timer = undefined;
  if (!document.hidden) await look();
  if (watchers.size && timer === undefined) timer = setTimeout(ask, silence === undefined ? EVERY_MS : AGAIN_MS);
}

async function look() {
  silence ??= setTimeout(() => tell({ ...seen, silent: true }), SILENT_MS);
  try {
    const answer = await fetch("/api/v1/master/health", { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status >= 500) throw new Error(answer.statusText);
    const health = answer.ok ? await answer.json() : null;
    endSilence();
    tell({ health, answeredAt: new Date(), silent: false });
  } catch {
    // `silence` goes on.
  }
}

/** An answer came, or nobody looks. */
function endSilence() {
  clearTimeout(silence);
  silence = undefined;
}

function watch(watcher: () => void) {
  watchers.add(watcher);
  if (timer === undefined) timer = setTimeout(ask, 0);
  return () => {
    watchers.delete(watcher);
    if (watchers.size) return;
    clearTimeout(timer);
    timer = undefined;
    endSilence();
  };
}

/** The latest known health. */
export const useHealth = (): Seen => useSyncExternalStore(watch, () => seen);

/** For callers outside of React. */
export const watchHealth = (watcher: (now: Seen) => void) => watch(() => watcher(seen));
