/** A single clock for all relative times. */

const EVERY_MS = 15_000;
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Calls `tell` at regular intervals; returns a function that unsubscribes. */
export function onTick(tell: () => void): () => void {
  watchers.add(tell);
  timer ??= setInterval(() => watchers.forEach((watcher) => watcher()), EVERY_MS);
  return () => {
    watchers.delete(tell);
    if (watchers.size) return;
    clearInterval(timer);
    timer = undefined;
  };
}
