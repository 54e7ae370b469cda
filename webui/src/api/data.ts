/** Data of a page: asked for once, and again when it has changed. */

import { keepPreviousData, type QueryClient, type QueryKey, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef } from "react";

import { get, send, stream } from "./client";
import { outages, useTopics } from "./live";
import type { User } from "./types";

/** Questions that will be asked again, but wait for an answer that is on its way: it may be older than the change. */
const due = new Map<string, Promise<void>>();

/** Ask again all that is shown whose key begins so; whoever wants that at the same moment shares one request. */
export function afresh(client: QueryClient, queryKey: QueryKey): Promise<void> {
  const key = JSON.stringify(queryKey);
  const ask = () => client.refetchQueries({ queryKey, type: "active" }, { cancelRefetch: false });
  const begun = due.get(key);
  if (begun) return begun;
  const round = (async () => {
    await (client.isFetching({ queryKey, type: "active" }) ? ask() : undefined);
    due.delete(key);
    await ask();
  })();
  due.set(key, round);
  return round;
}

const REST_SHARE = 2;
const wait = (ms: number) => new Promise((go) => setTimeout(go, ms));

/** How long to ask nothing after a round that took so long, in milliseconds; `away`: the server was, for a part of it. */
export const restAfter = (took: number, rest: number, away: boolean) => (away ? rest : Math.max(rest, took * REST_SHARE));

/**
 * Asks questions again when one of the topics has changed: one round at a time, and one more if something changed meanwhile. So an
 * answer that takes longer than the next change is shown all the same. `rest` is the least time between two, in milliseconds; after
 * answers that take long it is longer, so that neither the cluster nor the page is kept busy by them all the time. How long a server
 * that was away did not answer says nothing of that.
 */
export function useAgain(topics: string[], questions: QueryKey[], rest = 0) {
  const client = useQueryClient();
  const state = useRef({ busy: false, changed: false, questions });
  state.current.questions = questions;
  const again = useCallback(async () => {
    const now = state.current;
    now.changed = true;
    if (now.busy) return;
    now.busy = true;
    while (now.changed) {
      now.changed = false;
      const began = performance.now();
      const before = outages();
      await Promise.all(now.questions.map((one) => afresh(client, one)));
      await wait(restAfter(performance.now() - began, rest, before.now || outages().many !== before.many));
    }
    now.busy = false;
  }, [client, rest]);
  useTopics(topics, again);
}

/** What stands for a path's answer everywhere in the cache. */
export const question = <T>(path: string) => ({ queryKey: [path], queryFn: () => get<T>(path) });

/** `keep` shows the former answer while the path changes: for other parts of the same thing only, never for another thing. `rest`: see `useAgain`. */
export function useData<T>(path: string | null, topics: string[] = [], keep = false, rest = 0) {
  const found = useQuery({
    ...question<T>(path ?? ""),
    enabled: path !== null,
    placeholderData: keep ? keepPreviousData : undefined,
  });
  useAgain(path === null ? [] : topics, [[path]], rest);
  return found;
}

/** Whoever is logged in. Every page may ask: the channel tells when it has changed, so going elsewhere does not. */
export function useMe() {
  const found = useQuery({ ...question<{ user: User }>("me"), staleTime: Number.POSITIVE_INFINITY });
  useAgain(["users"], [["me"]]);
  return found;
}

/** The first result of a streaming answer. */
export async function first<T>(path: string): Promise<T | undefined> {
  const stop = new AbortController();
  try {
    for await (const page of stream<T>(path, stop.signal)) if (page.length) return page[0];
  } finally {
    stop.abort();
  }
  return undefined;
}

export interface Wish {
  method: string;
  path: string;
  body?: unknown;
}

/** Ask for a change; what is on the page is asked for again afterwards. */
export function useChange(onDone?: (answer: any) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (wish: Wish) => send<any>(wish.method, wish.path, wish.body),
    onSuccess: (answer) => {
      void client.invalidateQueries();
      onDone?.(answer);
    },
  });
}
