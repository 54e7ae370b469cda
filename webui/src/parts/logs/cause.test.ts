import { expect, test } from "vitest";

import { type Cause, follows, headline, lead, marksOf, shortPath } from "./cause";
import type { Line } from "./window";

const line = (id: number, rankId: number | null, log: string, at = id): Line => ({
  id,
  number: id,
  timestamp: new Date(at * 1000).toISOString(),
  level: null,
  rankId,
  allocationId: "1.a.1",
  agentId: "node-1",
  source: "task",
  stdtype: "stderr",
  log,
});
const lineOf = (id: number, log: string) => ({
  id: String(id),
  number: id,
  timestamp: new Date(id * 1000).toISOString(),
  level: null,
  log,
});
const CAUSE: Cause = {
  allocationId: "1.a.1",
  agentId: "node-1",
  rankId: 1,
  words: "GPU memory ran out",
  first: lineOf(2, "Traceback"),
  said: lineOf(7, "OutOfMemoryError"),
  place: { file: "/runs/1/workdir/model/attention.py", line: 88, function: "forward" },
  before: null,
  ranks: [],
};
const LINES = [
  line(1, 1, "step 1"),
  line(2, 1, "[rank1]: Traceback (most recent call last):"),
  line(3, 0, "step 2"),
  line(4, 1, '[rank1]:   File "/runs/1/workdir/train.py", line 3, in main'),
  line(5, 1, "[rank1]:     main()"),
  line(6, 1, '  File "/opt/lib/python3.11/site-packages/torch/x.py", line 9'),
  line(7, 1, "[rank1]: OutOfMemoryError: no"),
  line(8, 0, "Traceback (most recent call last):"),
  line(9, null, "agent: ended"),
];

test("a traceback marks head, frames and end, those of the cause separately, even with other writers in between", () => {
  const marks = marksOf(LINES, CAUSE);
  expect(LINES.map((line) => marks.get(line.id)?.mark ?? "-")).toEqual(["-", "head", "-", "own", "", "frame", "said", "head", "-"]);
  expect(LINES.filter((line) => marks.get(line.id)?.isCause).map((line) => line.id)).toEqual([2, 4, 5, 6, 7]);
  expect(marksOf(LINES, null).get(7)).toEqual({ mark: "said", isCause: false });
});

test("lines of other ranks after the failure follow from it", () => {
  expect(LINES.filter((line) => follows(line, CAUSE)).map((line) => line.id)).toEqual([3, 8]);
  expect(follows({ ...LINES[7]!, allocationId: "1.a.2" }, CAUSE)).toBe(false);
  // Printed before the failure, but it arrived later.
  expect(follows(line(20, 0, "step", 1), CAUSE)).toBe(false);
  expect(follows(LINES[7]!, null)).toBe(false);
});

test("the headline says it in words", () => {
  const ranks = (...failed: (string | null)[]) => failed.map((failedTimestamp, rankId) => ({ rankId, failedTimestamp }) as never);
  expect(headline({ ...CAUSE, ranks: ranks("10:00:02", "10:00:01") })).toBe("Rank 1 failed first: GPU memory ran out");
  expect(headline({ ...CAUSE, ranks: ranks(null, "10:00:01") })).toBe("Rank 1 failed: GPU memory ran out");
  expect(headline({ ...CAUSE, rankId: null, words: "" })).toBe("It failed");
  expect(shortPath(CAUSE.place!.file)).toBe("model/attention.py");
});

test("the line before a failure says how long before, and no more than the clocks know", () => {
  expect(lead("2026-11-20T12:00:00.000Z", "2026-11-20T12:00:03.240Z")).toBe("3.2 s before");
  expect(lead("2026-11-20T12:00:00.000Z", "2026-11-20T12:20:00.000Z")).toBe("20 min before");
  expect(lead("2026-11-20T12:00:00.058Z", "2026-11-20T12:00:00.054Z")).toBe("just before");
});
