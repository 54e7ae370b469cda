/** One stream of server-sent events per tab: tells which topics have changed. */

import { useEffect, useSyncExternalStore } from "react";

import { query } from "./client";

type Listener = () => void;
const FALL_BACK_MS = 5000;
const GATHER_MS = 50;

const listeners = new Map<string, Set<Listener>>();
let source: EventSource | null = null;
let asked = "";
/** Up to here every topic that is listened to has been told of. */
let last: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let lostAt: Date | null = null;
const watchers = new Set<Listener>();

let outagesSoFar = 0;

function setLost(at: Date | null) {
  if ((lostAt === null) === (at === null)) return;
  if (at) outagesSoFar += 1;
  lostAt = at;
  watchers.forEach((tell) => tell());
}

function tell(topics: string[]) {
  const found = new Set(topics.flatMap((topic) => [...(listeners.get(topic) ?? [])]));
  found.forEach((listener) => listener());
}

function connect() {
  timer = undefined;
  const topics = [...listeners.keys()].sort().join(",");
  if (topics === asked && source && source.readyState !== EventSource.CLOSED) return;
  source?.close();
  source = null;
  asked = topics;
  if (!topics) return;
  source = new EventSource(`/api/v1/live${query({ topics, after: last })}`);
  source.addEventListener("changed", (event) => {
    setLost(null);
    // While another stream is due this one knows nothing of the topics that are new.
    if (timer === undefined) last = event.lastEventId;
    tell(JSON.parse(event.data).topics);
  });
  source.onerror = () => {
    setLost(lostAt ?? new Date());
    // What the browser gives up, we take up again.
    if (source?.readyState === EventSource.CLOSED) setTimeout(connect, FALL_BACK_MS);
  };
}

function reconnect() {
  timer ??= setTimeout(connect, GATHER_MS);
}

// While the stream is broken, pages ask by themselves.
setInterval(() => lostAt && tell([...listeners.keys()]), FALL_BACK_MS);

/** Listen to topics; returns how to stop that. What is asked of the server behind this is told of when it changes. */
export function subscribe(topics: string[], listener: Listener): () => void {
  for (const topic of topics) {
    if (!listeners.has(topic)) listeners.set(topic, new Set());
    listeners.get(topic)!.add(listener);
  }
  reconnect();
  return () => {
    for (const topic of topics) {
      listeners.get(topic)?.delete(listener);
      if (!listeners.get(topic)?.size) listeners.delete(topic);
    }
    reconnect();
  };
}

/** Call `onChange` whenever one of the topics has changed. */
export function useTopics(topics: string[], onChange: Listener) {
  const key = topics.join(",");
  useEffect(() => (key ? subscribe(key.split(","), onChange) : undefined), [key, onChange]);
}

/** How often the stream has broken so far, and whether it is broken now. */
export const outages = () => ({ many: outagesSoFar, now: lostAt !== null });

/** Since when the stream is broken; null while it works. */
export function useLost(): Date | null {
  return useSyncExternalStore(
    (listener) => {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    () => lostAt,
  );
}
