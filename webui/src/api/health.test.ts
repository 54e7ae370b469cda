import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { Seen } from "./health";

let answers: (() => Promise<unknown>)[];
let reported: Seen[];
let stop: () => void;

const well = { status: "up", reasons: [] };
const says =
  (body: object, status = 200) =>
  async () => ({ ok: status < 300, status, statusText: "", json: async () => body });
const nothing = async () => {
  throw new TypeError("Failed to fetch");
};

beforeEach(async () => {
  vi.useFakeTimers({ now: 1_000_000 });
  vi.resetModules();
  vi.stubGlobal("document", { hidden: false });
  // The last answer repeats for ever.
  vi.stubGlobal("fetch", () => (answers.length > 1 ? answers.shift()! : answers[0]!)());
  reported = [];
});
afterEach(() => {
  stop();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function watch(...given: (() => Promise<unknown>)[]) {
  answers = given;
  const { watchHealth } = await import("./health");
  stop = watchHealth((now) => reported.push(now));
}
const last = () => reported[reported.length - 1];

test("a problem shows within seconds, and so does its end", async () => {
  const wrong = { status: "down", reasons: [{ condition: "nobody_leads" }] };
  await watch(says(well), says(wrong), says(well));
  await vi.advanceTimersByTimeAsync(1);
  expect(last()!.health!.status).toBe("up");
  await vi.advanceTimersByTimeAsync(3000);
  expect(last()!.health).toEqual(wrong);
  await vi.advanceTimersByTimeAsync(3000);
  expect(last()!.health!.status).toBe("up");
});

test("a gateway that does not answer is reported with the time of its last answer, until it answers", async () => {
  await watch(says(well), nothing);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(last()).toMatchObject({ silent: true, answeredAt: new Date(1_000_000) });
  answers = [says(well)];
  await vi.advanceTimersByTimeAsync(5000);
  expect(last()).toMatchObject({ silent: false });
  expect(last()!.answeredAt!.getTime()).toBeGreaterThan(1_000_000);
});

test("a short restart is not reported", async () => {
  await watch(says(well), nothing, says({}, 502), says(well));
  await vi.advanceTimersByTimeAsync(30_000);
  expect(reported.some(({ silent }) => silent)).toBe(false);
});

test("a gateway that accepts requests but answers none is silent, too", async () => {
  const hangs = () => new Promise((_, fail) => setTimeout(() => fail(new DOMException("", "TimeoutError")), 4000));
  await watch(says(well), hangs);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(last()!.silent).toBe(true);
});

test("silence is told within five seconds of the last answer, however the gateway fails", async () => {
  const hangs = () => new Promise(() => {});
  for (const fails of [nothing, hangs, says({}, 503)]) {
    await watch(says(well), fails);
    await vi.advanceTimersByTimeAsync(5000);
    expect(last()).toMatchObject({ silent: true });
    stop();
    vi.resetModules();
  }
});

test("a hidden page polls nothing", async () => {
  await watch(says(well));
  vi.stubGlobal("document", { hidden: true });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reported).toEqual([]);
});
