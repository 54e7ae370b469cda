import { expect, test } from "vitest";

import type { Job } from "../../api/types";
import { consequence, startsAt, will } from "./facts";

const NOON = new Date(2026, 10, 22, 12, 0).getTime();
const job = (more: Partial<Job>) =>
  ({ jobId: "experiment-1", canStart: true, startsIn: null, endsIn: null, isPreemptible: true, ...more }) as Job;

test("a waiting job says when it starts, if that is known", () => {
  expect(startsAt(job({ startsIn: 0 }), NOON)).toBe("now");
  expect(startsAt(job({ startsIn: 40 }), NOON)).toBe("within a minute");
  expect(startsAt(job({ startsIn: 5400 }), NOON)).toBe("about 13:30");
  expect(startsAt(job({}), NOON)).toBe("not known yet");
  expect(startsAt(job({ canStart: false }), NOON)).toBe("never as it is");
  // Enough slots are free but the job still waits: they are on agents that are too small for it.
  expect(startsAt(job({ startsIn: 0, submissionTime: new Date(NOON - 60_000).toISOString() }), NOON)).toBe("when slots fit");
});

test("a running job says when it ends", () => {
  expect(will(job({ endsIn: 2830 }))).toBe("ends in about 48 min");
  expect(will(job({ isPreemptible: false }))).toBe("runs until it is ended");
});

test("a move says whom it interrupts and what it gains", () => {
  const names = new Map([["experiment-2", "bert"]]);
  expect(consequence(job({ startsIn: 7200 }), { starts: [], leaves: [], startsIn: 3600 }, names, NOON)).toBe(
    "Nothing is interrupted. It starts about 13:00 instead of 14:00.",
  );
  expect(consequence(job({}), { starts: [], leaves: ["experiment-2"], startsIn: null }, names, NOON)).toBe(
    "bert is asked to save a checkpoint and stop.",
  );
  expect(consequence(job({}), { starts: ["experiment-1"], leaves: [], startsIn: 0 }, names, NOON)).toBe(
    "Nothing is interrupted. It starts at once.",
  );
});
