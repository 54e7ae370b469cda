/** How pages ask: what fails is asked again, and nothing but the server's answer says whether it can be reached. */

import { QueryClient } from "@tanstack/react-query";

import { ApiError } from "./client";

const RETRIES = 3;
/** Between two attempts at what has failed, once its retries are used up. */
export const AGAIN_MS = 5000;

/** Whether the same question may be answered later: the server was away, behind, or asked too much at once. */
const mayPass = (error: unknown) => !(error instanceof ApiError && error.status < 500 && error.status !== 429);

export const queryClient = () =>
  new QueryClient({
    defaultOptions: {
      queries: {
        // What is in the cache is told of changes only while a page shows it.
        staleTime: 0,
        retry: (count, error) => count < RETRIES && mayPass(error),
        // The live channel tells of changes alone: it would not tell that an answer may be had by now.
        refetchInterval: ({ state }) => state.status === "error" && mayPass(state.error) && AGAIN_MS,
        refetchOnWindowFocus: true,
        // A browser without a network is "offline", and its cluster on this machine answers all the same.
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
