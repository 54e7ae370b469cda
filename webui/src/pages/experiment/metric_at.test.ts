import { expect, test } from "vitest";

import type { Checkpoint } from "../../api/types";
import { metricAt } from "./metric_at";

const at = (searcherMetric: number | null, avgMetrics: Record<string, unknown>) =>
  metricAt({ training: { trialId: 1, experimentId: 1, searcherMetric, validationMetrics: { avgMetrics } } } as Checkpoint, "val_loss");

test("a checkpoint saved at NaN says so, and one without a validation says nothing", () => {
  expect(at(0.25, { val_loss: 0.25 })).toBe("0.2500");
  expect(at(null, { val_loss: "NaN", val_accuracy: 0.5 })).toBe("NaN");
  expect(at(null, { val_loss: "-Infinity" })).toBe("-Infinity");
  expect(at(null, {})).toBe("");
  expect(metricAt({ training: null } as Checkpoint, "val_loss")).toBe("");
});
