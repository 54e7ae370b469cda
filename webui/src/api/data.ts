/** Data for pages: fetched once, and refetched when it has changed. */

import { keepPreviousData, type QueryClient, type QueryKey, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef } from "react";

import { get, send, stream } from "./client";
import { outages, useTopics } from "./live";
import type { Me } from "./types";

/** Refetches that wait for a request in flight, because its answer may be older than the change. */
const due = new Map<string, Promise<void>>();

/**
 * Refetches every active query whose key starts with `queryKey`; callers that do so at the same moment share one
 * request.
 */
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

/**
 * How long to pause after a round of refetching that took `took`, in milliseconds; `away`: the server was unreachable
 * for part of that time.
 */
export const restAfter = (took: number, rest: number, away: boolean) => (away ? rest : Math.max(rest, took * REST_SHARE));

/**
 * Refetches the queries when one of the topics changes: one round at a time, plus one more if something changed
 * meanwhile, so an answer that takes longer than the interval between changes is still shown. `rest` is the minimum
 * pause between rounds, in milliseconds. After slow answers the pause grows, so that refetching does not keep the
 * cluster and the page busy all the time; time during which the server was unreachable does not count.
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
      await Promise.all(now.questions.map((question) => afresh(client, question)));
      await wait(restAfter(performance.now() - began, rest, before.now || outages().many !== before.many));
    }
    now.busy = false;
  }, [client, rest]);
  useTopics(topics, again);
}

/** Query options for a path; its key identifies the path's answer everywhere in the cache. */
export const question = <T>(path: string) => ({ queryKey: [path], queryFn: () => get<T>(path) });

/**
 * `keep` shows the previous answer while the path changes. Use it for other parts of the same object only, never for
 * another object. `rest`: see `useAgain`.
 */
export function useData<T>(path: string | null, topics: string[] = [], keep = false, rest = 0) {
  const answer = useQuery({
    ...question<T>(path ?? ""),
    enabled: path !== null,
    placeholderData: keep ? keepPreviousData : undefined,
  });
  useAgain(path === null ? [] : topics, [[path]], rest);
  return answer;
}

/**
 * The signed-in user and what this user may do. Every page may call this: the live channel reports changes, so navigation does not refetch it.
 */
export function useMe() {
  const answer = useQuery({ ...question<Me>("me"), staleTime: Number.POSITIVE_INFINITY });
  useAgain(["users", "rights"], [["me"]]);
  return answer;
}

/** The first result of a streaming response. */
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

/** Sends a change, then refetches everything that the page shows. */
export function useChange(onDone?: (answer: any) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (request: Wish) => send<any>(request.method, request.path, request.body),
    onSuccess: (answer) => {
      void client.invalidateQueries();
      onDone?.(answer);
    },
  });
}
