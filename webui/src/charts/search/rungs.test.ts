import { expect, test } from "vitest";

import { type Brackets, decisions } from "./rungs";

test("the last decision about each trial counts, with its rank", () => {
  const brackets: Brackets = [
    [
      {
        length: 4,
        waiting: 0,
        count: 3,
        entries: [
          { trialId: 2, metric: 0.1, verdict: "promoted" },
          { trialId: 1, metric: 0.4, verdict: "stopped" },
          { trialId: 3, metric: null, verdict: "left" },
        ],
      },
      { length: 16, waiting: 0, count: 1, entries: [{ trialId: 2, metric: 0.05, verdict: "top" }] },
    ],
  ];
  const made = decisions(brackets, "epochs");
  expect(made.get(2)).toEqual({ text: "reached 16 epochs, 1st of 1", verdict: "top", ending: "" });
  expect(made.get(1)).toEqual({ text: "stopped after 4 epochs, 2nd of 3", verdict: "stopped", ending: "stopped" });
  expect(made.get(3)).toEqual({ text: "failed before 4 epochs", verdict: "left", ending: "failed" });
});
