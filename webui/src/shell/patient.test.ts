import { afterEach, expect, test, vi } from "vitest";

import { patient } from "./patient";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const FAILED = new TypeError("Failed to fetch dynamically imported module");

function stub(answer: () => Promise<Partial<Response>>) {
  const reload = vi.fn();
  vi.stubGlobal("fetch", vi.fn(answer));
  vi.stubGlobal("document", { hidden: false });
  vi.stubGlobal("location", { reload });
  return reload;
}

test("what loads is there", async () => {
  expect(await patient(async () => 7)).toBe(7);
});

test("what is gone while the gateway answers is told of", async () => {
  const reload = stub(async () => ({ ok: true, status: 200, json: async () => ({}) }));
  await expect(patient(() => Promise.reject(FAILED))).rejects.toBe(FAILED);
  expect(reload).not.toHaveBeenCalled();
});

test("while the gateway is away it is waited for, and then the page comes anew", async () => {
  vi.useFakeTimers();
  let away = true;
  const reload = stub(async () => {
    if (away) throw new TypeError("Failed to fetch");
    return { ok: true, status: 200, json: async () => ({}) };
  });
  void patient(() => Promise.reject(FAILED));
  await vi.advanceTimersByTimeAsync(20_000);
  expect(reload).not.toHaveBeenCalled();
  away = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(reload).toHaveBeenCalledOnce();
});
