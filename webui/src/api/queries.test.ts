import { environmentManager, onlineManager, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "./client";
import { restAfter } from "./data";
import { AGAIN_MS, queryClient } from "./queries";

beforeEach(() => {
  vi.useFakeTimers();
  // Without a window, React Query would take this for a server and use no timers.
  environmentManager.setIsServer(() => false);
});
afterEach(() => {
  onlineManager.setOnline(true);
  vi.useRealTimers();
});

/** A page that shows the answer to one query. */
function shown(answer: () => Promise<number>) {
  const observer = new QueryObserver(queryClient(), { queryKey: ["x"], queryFn: answer });
  const leave = observer.subscribe(() => {});
  return { now: () => observer.getCurrentResult(), leave };
}
const RETRIES_MS = 10_000;

test("a query that failed after all retries is asked again until it is answered", async () => {
  const answer = vi.fn(() => Promise.reject<number>(new ApiError(503, "behind")));
  const page = shown(answer);
  await vi.advanceTimersByTimeAsync(RETRIES_MS);
  expect(page.now().status).toBe("error");
  answer.mockImplementation(() => Promise.resolve(7));
  await vi.advanceTimersByTimeAsync(AGAIN_MS);
  expect(page.now().data).toBe(7);
  const asked = answer.mock.calls.length;
  await vi.advanceTimersByTimeAsync(10 * AGAIN_MS);
  expect(answer).toHaveBeenCalledTimes(asked);
  page.leave();
});

test("a request that the server rejects is not retried", async () => {
  const answer = vi.fn(() => Promise.reject<number>(new ApiError(404, "there is no experiment 7")));
  const page = shown(answer);
  await vi.advanceTimersByTimeAsync(RETRIES_MS + 10 * AGAIN_MS);
  expect(answer).toHaveBeenCalledTimes(1);
  page.leave();
});

test("a browser that reports itself offline still sends requests: the cluster may be on the same machine", async () => {
  onlineManager.setOnline(false);
  const page = shown(() => Promise.resolve(7));
  await vi.advanceTimersByTimeAsync(0);
  expect(page.now().data).toBe(7);
  page.leave();
});

test("a round that was slow because the server was away is not followed by a pause of minutes", () => {
  expect(restAfter(60_000, 1000, true)).toBe(1000);
  expect(restAfter(60_000, 1000, false)).toBe(120_000);
  expect(restAfter(800, 1000, false)).toBe(1600);
  expect(restAfter(10, 3000, false)).toBe(3000);
});

test("who finds the session ended has the page ask who it is, once", async () => {
  const client = queryClient();
  const me = vi.fn(() => Promise.resolve(7));
  const who = new QueryObserver(client, { queryKey: ["me"], queryFn: me, staleTime: Number.POSITIVE_INFINITY });
  const leave = who.subscribe(() => {});
  await vi.advanceTimersByTimeAsync(1);
  expect(me).toHaveBeenCalledTimes(1);
  const ended = () => Promise.reject(new ApiError(401, "not logged in"));
  me.mockImplementation(ended);
  await client.fetchQuery({ queryKey: ["refused"], queryFn: () => Promise.reject(new ApiError(403, "not yours")) }).catch(() => {});
  await vi.advanceTimersByTimeAsync(1000);
  expect(me).toHaveBeenCalledTimes(1);
  await client.fetchQuery({ queryKey: ["agents"], queryFn: ended }).catch(() => {});
  await vi.advanceTimersByTimeAsync(60_000);
  expect(me).toHaveBeenCalledTimes(2);
  expect(who.getCurrentResult().error).toMatchObject({ status: 401 });
  leave();
});
