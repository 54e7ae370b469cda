import { afterEach, beforeEach, expect, test, vi } from "vitest";

class Stream {
  static readonly CLOSED = 2;
  static made: Stream[] = [];
  readyState = 1;
  onerror?: () => void;
  private tell?: (event: { data: string; lastEventId: string }) => void;
  constructor(readonly url: string) {
    Stream.made.push(this);
  }
  addEventListener(_: string, tell: (event: { data: string; lastEventId: string }) => void) {
    this.tell = tell;
  }
  close() {
    this.readyState = Stream.CLOSED;
  }
  says(lastEventId: string, ...topics: string[]) {
    this.tell!({ data: JSON.stringify({ topics }), lastEventId });
  }
  breaks() {
    this.close();
    this.onerror!();
  }
}

const opened = () => Stream.made.map(({ url }) => Object.fromEntries(new URL(url, "http://x").searchParams));
const settle = () => vi.advanceTimersByTime(60);
let subscribe: typeof import("./live").subscribe;
let outages: typeof import("./live").outages;

beforeEach(async () => {
  vi.useFakeTimers();
  vi.resetModules();
  vi.stubGlobal("EventSource", Stream);
  Stream.made = [];
  ({ subscribe, outages } = await import("./live"));
});
afterEach(() => {
  vi.unstubAllGlobals();
  // Other files run in the same process.
  vi.useRealTimers();
});

test("a stream for other topics continues after the last event", () => {
  const mock = vi.fn();
  subscribe(["users"], mock);
  settle();
  Stream.made[0]!.says("7", "users");
  subscribe(["cluster"], mock);
  settle();
  expect(opened()).toEqual([{ topics: "users" }, { topics: "cluster,users", after: "7" }]);
  expect(mock).toHaveBeenCalledTimes(1);
});

test("an event that arrives before the new stream opens does not move the position: it says nothing about the new topics", () => {
  subscribe(["users"], () => {});
  settle();
  Stream.made[0]!.says("7", "users");
  subscribe(["cluster"], () => {});
  Stream.made[0]!.says("9", "users");
  settle();
  expect(opened()[1]).toEqual({ topics: "cluster,users", after: "7" });
});

test("a stream that the browser closed resumes where it ended", () => {
  const mock = vi.fn();
  subscribe(["users"], mock);
  settle();
  Stream.made[0]!.says("7", "users");
  Stream.made[0]!.breaks();
  vi.advanceTimersByTime(5000);
  expect(opened()[1]).toEqual({ topics: "users", after: "7" });
});

test("an outage is counted once, however many errors it causes", () => {
  subscribe(["users"], () => {});
  settle();
  expect(outages()).toEqual({ many: 0, now: false });
  Stream.made[0]!.breaks();
  Stream.made[0]!.breaks();
  expect(outages()).toEqual({ many: 1, now: true });
  vi.advanceTimersByTime(5000);
  Stream.made[1]!.says("8", "users");
  expect(outages()).toEqual({ many: 1, now: false });
});

test("a listener that left gets no more events, and the stream closes with the last listener", () => {
  const mock = vi.fn();
  const leave = subscribe(["users"], mock);
  settle();
  leave();
  Stream.made[0]!.says("8", "users");
  settle();
  expect(mock).not.toHaveBeenCalled();
  expect(Stream.made).toHaveLength(1);
  expect(Stream.made[0]!.readyState).toBe(Stream.CLOSED);
});
