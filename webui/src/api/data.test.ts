import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { expect, test } from "vitest";

import { afresh } from "./data";

/** A query whose answers the test supplies by hand. */
function asked() {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const answers: ((value: number) => void)[] = [];
  const queryFn = () => new Promise<number>((tell) => answers.push(tell));
  const observer = new QueryObserver(client, { queryKey: ["x"], queryFn });
  observer.subscribe(() => {});
  const answer = async (value: number) => {
    answers.at(-1)!(value);
    await new Promise((go) => setTimeout(go));
  };
  return { client, answers, answer, shown: () => observer.getCurrentResult().data };
}

test("a request in flight may be older than the change, so the query is refetched after it", async () => {
  const { client, answers, answer, shown } = asked();
  const done = afresh(client, ["x"]);
  expect(answers).toHaveLength(1);
  await answer(1);
  expect(shown()).toBe(1);
  expect(answers).toHaveLength(2);
  await answer(2);
  await done;
  expect(shown()).toBe(2);
});

test("callers that refetch at the same moment share one request", async () => {
  const { client, answers, answer } = asked();
  await answer(1);
  const done = Promise.all([afresh(client, ["x"]), afresh(client, ["x"])]);
  await Promise.resolve();
  await answer(2);
  await done;
  expect(answers).toHaveLength(2);
});
