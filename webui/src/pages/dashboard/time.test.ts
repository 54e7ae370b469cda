import { expect, test } from "vitest";

import { timeOf } from "./time";

const of = (state: string, runningTime: number, progress = 0, slotHours = 0) =>
  timeOf({ state: `STATE_${state}`, runningTime, progress, slotHours, duration: 400 });

test("what runs says what is left, or how long it has run while that is unknown", () => {
  expect(of("RUNNING", 60, 0.5)).toBe("1 min left");
  expect(of("RUNNING", 130)).toBe("runs for 2 min");
  expect(of("RUNNING", 0)).toBe("just started");
});

test("what waits says for how long, or what it ran before it was preempted", () => {
  expect(of("QUEUED", 0)).toBe("waits 7 min");
  expect(of("QUEUED", 45)).toBe("ran 45 s");
});

test("what has ended or is paused says how long it ran", () => {
  expect(of("COMPLETED", 45)).toBe("ran 45 s");
  expect(of("PAUSED", 0)).toBe("never ran");
  // It failed at once.
  expect(of("ERROR", 0, 0, 0.0001)).toBe("ran under 1 s");
});
