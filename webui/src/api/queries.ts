/** React Query settings: failed queries are retried, and only the server's answers decide whether it is reachable. */

import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";

import { ApiError } from "./client";

const RETRIES = 3;
/** Interval between attempts once a query has used up its retries. */
export const AGAIN_MS = 5000;

/** Whether the same request may succeed later: the server was away, lagging or overloaded. */
export const mayPass = (error: unknown) => !(error instanceof ApiError && error.status < 500 && error.status !== 429);

/** The session has ended, here or in another tab. */
const isOutside = (error: unknown) => error instanceof ApiError && error.status === 401;

export function queryClient(): QueryClient {
  // Who is asking is asked only once, and decides whether a page leads to the sign-in.
  const askWho = () => void client.invalidateQueries({ queryKey: ["me"] });
  const client = new QueryClient({
    queryCache: new QueryCache({ onError: (error, query) => isOutside(error) && query.queryKey[0] !== "me" && askWho() }),
    mutationCache: new MutationCache({ onError: (error) => isOutside(error) && askWho() }),
    defaultOptions: {
      queries: {
        // The live channel refreshes only queries that a page shows, so cached data of any other query is stale.
        staleTime: 0,
        retry: (count, error) => count < RETRIES && mayPass(error),
        // The live channel reports changes only; it would not say that the request may succeed now.
        refetchInterval: ({ state }) => state.status === "error" && mayPass(state.error) && AGAIN_MS,
        refetchOnWindowFocus: true,
        // A browser without a network counts as offline, but a cluster on the same machine still answers.
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
  return client;
}
