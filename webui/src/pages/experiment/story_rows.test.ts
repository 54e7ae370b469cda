import { expect, test } from "vitest";

import type { Step } from "./story";
import { joined, rowsOf, saidOf } from "./story_rows";

const step = (position: number, name: string, trial = 11): Step => ({
  position,
  name,
  time: "",
  actor: "",
  what: "",
  reason: "",
  about: { kind: "trial", id: String(trial) },
  because: [],
});
const progress = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => step(from + at, "trial.progressed"));
const rows = (steps: Step[], here?: number) =>
  rowsOf(steps, here).map((row) => (row.kind === "one" ? row.step.position : row.steps.map((step) => step.position)));

test("consecutive progress reports share a row, in either direction of the list", () => {
  const steps = [step(1, "searcher.trial.created"), ...progress(2, 7), step(7, "searcher.trial.ended"), ...progress(8, 10)];
  expect(rows(steps)).toEqual([1, [2, 3, 4, 5, 6], 7, 8, 9]);
  expect(rows(steps.toReversed())).toEqual([9, 8, 7, [6, 5, 4, 3, 2], 1]);
  expect(rowsOf(steps.toReversed()).find((row) => row.kind === "several")).toMatchObject({ key: 2 });
});

test("the selected event has a row of its own", () => {
  expect(rows(progress(1, 11), 5)).toEqual([[1, 2, 3, 4], 5, [6, 7, 8, 9, 10]]);
});

test("a group names the trials whose progress it reports", () => {
  const of = (...trials: number[]) => saidOf(trials.map((trial, at) => step(at, "trial.progressed", trial)));
  expect(of(11, 11, 11)).toBe("3 reports of progress, of trial 11");
  expect(of(37, 5, 37)).toBe("3 reports of progress, of trials 5 and 37");
  expect(of(1, 2, 3, 4, 5)).toBe("5 reports of progress, of trials 1, 2, 3 and 2 more");
});

test("new events after older ones were loaded leave no gap before the newest", () => {
  const at = (steps: Step[]) => steps.map((step) => step.position);
  // The newest answer has moved on by two: only the answer before it holds 8 and 9.
  const held = joined(progress(1, 10), progress(8, 12));
  expect(at(held)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect(at(joined(held, progress(10, 14)))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  expect(at(joined(progress(1, 10), progress(40, 42)))).toEqual([40, 41]);
  expect(at(joined([], progress(1, 3)))).toEqual([1, 2]);
});
