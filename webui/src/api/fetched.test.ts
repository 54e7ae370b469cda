import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { fetchedPage, fetchedPart } from "./fetched";

const FAILED = new TypeError("Failed to fetch dynamically imported module");
const reload = vi.fn();
let away = false;

beforeEach(() => {
  vi.useFakeTimers();
  reload.mockReset();
  away = false;
  const stored = new Map<string, string>();
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, value: string) => void stored.set(name, value),
  });
  vi.stubGlobal("document", { hidden: false });
  vi.stubGlobal("location", { reload });
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => {
      if (away) throw new TypeError("Failed to fetch");
      return { ok: true, status: 200, json: async () => ({}) };
    }),
  );
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("returns what loads", async () => {
  expect(await fetchedPage(async () => 7)).toBe(7);
  expect(await fetchedPart(async () => 7)).toBe(7);
});

test("a page that fails to load while the gateway answers is reloaded once: there is a new release", async () => {
  void fetchedPage(() => Promise.reject(FAILED));
  await vi.advanceTimersByTimeAsync(0);
  expect(reload).toHaveBeenCalledOnce();
  await expect(fetchedPage(() => Promise.reject(FAILED))).rejects.toBe(FAILED);
  await vi.advanceTimersByTimeAsync(60_000);
  void fetchedPage(() => Promise.reject(FAILED));
  await vi.advanceTimersByTimeAsync(0);
  expect(reload).toHaveBeenCalledTimes(2);
});

test("while the gateway is away, waits for it and then reloads the page", async () => {
  away = true;
  void fetchedPage(() => Promise.reject(FAILED));
  await vi.advanceTimersByTimeAsync(20_000);
  expect(reload).not.toHaveBeenCalled();
  away = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(reload).toHaveBeenCalledOnce();
});

test("a part waits for the gateway and appears without a reload", async () => {
  away = true;
  const load = vi.fn(() => (away ? Promise.reject<number>(FAILED) : Promise.resolve(7)));
  const part = fetchedPart(load);
  await vi.advanceTimersByTimeAsync(20_000);
  away = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await part).toBe(7);
  expect(reload).not.toHaveBeenCalled();
});

test("a part appears even if the gateway came back before anything watched it", async () => {
  const load = vi.fn().mockRejectedValueOnce(FAILED).mockResolvedValue(7);
  const part = fetchedPart(load);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await part).toBe(7);
});

test("a part that is missing while the gateway answers raises an error", async () => {
  const part = expect(fetchedPart(() => Promise.reject(FAILED))).rejects.toBe(FAILED);
  await vi.advanceTimersByTimeAsync(10_000);
  await part;
  expect(reload).not.toHaveBeenCalled();
});
