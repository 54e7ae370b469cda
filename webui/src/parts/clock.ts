/** One clock for all that tells how long ago something was. */

const EVERY_MS = 15_000;
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Calls back every now and then; returns how to stop that. */
export function onTick(tell: () => void): () => void {
  watchers.add(tell);
  timer ??= setInterval(() => watchers.forEach((one) => one()), EVERY_MS);
  return () => {
    watchers.delete(tell);
    if (watchers.size) return;
    clearInterval(timer);
    timer = undefined;
  };
}
