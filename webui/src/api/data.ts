/** Data of a page: asked for once, and again when it has changed. */

import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

import { get, send, stream } from "./client";
import { useTopics } from "./live";

/** `keep` shows the former answer while the path changes: for other parts of the same thing only, never for another thing. */
export function useData<T>(path: string | null, topics: string[] = [], keep = false) {
  const client = useQueryClient();
  const found = useQuery({
    queryKey: [path],
    queryFn: () => get<T>(path!),
    enabled: path !== null,
    placeholderData: keep ? keepPreviousData : undefined,
  });
  const again = useCallback(() => void client.invalidateQueries({ queryKey: [path] }), [client, path]);
  useTopics(path === null ? [] : topics, again);
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
