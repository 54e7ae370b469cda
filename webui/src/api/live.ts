/** One stream of server-sent events per browser tab; it says which topics have changed. */

import { useEffect, useSyncExternalStore } from "react";

import { query } from "./client";

type Listener = () => void;
const FALL_BACK_MS = 5000;
const GATHER_MS = 50;

const listeners = new Map<string, Set<Listener>>();
let source: EventSource | null = null;
let asked = "";
/** Position up to which every subscribed topic has been reported. */
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
  const concerned = new Set(topics.flatMap((topic) => [...(listeners.get(topic) ?? [])]));
  concerned.forEach((listener) => listener());
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
    // While a reconnect is pending, this stream does not cover the new topics, so its position must not advance.
    if (timer === undefined) last = event.lastEventId;
    tell(JSON.parse(event.data).topics);
  });
  source.onerror = () => {
    setLost(lostAt ?? new Date());
    // Reopen the stream if the browser has given up on it.
    if (source?.readyState === EventSource.CLOSED) setTimeout(connect, FALL_BACK_MS);
  };
}

function reconnect() {
  timer ??= setTimeout(connect, GATHER_MS);
}

// While the stream is broken, pages poll instead.
setInterval(() => lostAt && tell([...listeners.keys()]), FALL_BACK_MS);

/**
 * Subscribes to topics; returns a function that unsubscribes. Every later change of data fetched after this call is
 * reported.
 */
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

/** Calls `onChange` whenever one of the topics changes. */
export function useTopics(topics: string[], onChange: Listener) {
  const key = topics.join(",");
  useEffect(() => (key ? subscribe(key.split(","), onChange) : undefined), [key, onChange]);
}

/** How often the stream has broken so far, and whether it is broken now. */
export const outages = () => ({ many: outagesSoFar, now: lostAt !== null });

/** Since when the stream has been broken; null while it works. */
export function useLost(): Date | null {
  return useSyncExternalStore(
    (listener) => {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    () => lostAt,
  );
}
