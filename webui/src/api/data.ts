/** Data of a page: asked for once, and again when it has changed. */

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef } from "react";

import { get, send, stream } from "./client";
import { useTopics } from "./live";

/**
 * Asks again when one of the topics has changed: one request at a time, and one more if something changed meanwhile. So an answer
 * that takes longer than the next change is shown all the same. `rest` is the least time between two, in milliseconds.
 */
export function useAgain(topics: string[], ask: (options: { cancelRefetch: boolean }) => Promise<unknown>, rest = 0) {
  const state = useRef({ busy: false, changed: false, ask });
  state.current.ask = ask;
  const again = useCallback(async () => {
    const now = state.current;
    now.changed = true;
    if (now.busy) return;
    now.busy = true;
    while (now.changed) {
      now.changed = false;
      await now.ask({ cancelRefetch: false });
      if (rest) await new Promise((go) => setTimeout(go, rest));
    }
    now.busy = false;
  }, [rest]);
  useTopics(topics, again);
}

/** `keep` shows the former answer while the path changes: for other parts of the same thing only, never for another thing. `rest`: see `useAgain`. */
export function useData<T>(path: string | null, topics: string[] = [], keep = false, rest = 0) {
  const found = useQuery({
    queryKey: [path],
    queryFn: () => get<T>(path!),
    enabled: path !== null,
    placeholderData: keep ? keepPreviousData : undefined,
  });
  useAgain(path === null ? [] : topics, found.refetch, rest);
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
