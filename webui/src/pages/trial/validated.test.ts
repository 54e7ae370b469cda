import { expect, test } from "vitest";

import type { Summary } from "../../api/types";
import { lastValidated } from "./validated";

const accuracy = { accuracy: { count: 1, type: "number" } as Summary };

test.each([
  ["STATE_COMPLETED", {}, "nothing was validated"],
  ["STATE_RUNNING", { avg_metrics: accuracy }, "no validation yet"],
  ["STATE_COMPLETED", { validation_metrics: accuracy }, "no validation reported loss"],
  ["STATE_RUNNING", { validation_metrics: accuracy }, "no validation reported loss"],
] as const)("a trial that is %s with %o was validated: %s", (state, summaryMetrics, words) =>
  expect(lastValidated({ state, summaryMetrics, latestValidation: null }, "loss")).toBe(words),
);
