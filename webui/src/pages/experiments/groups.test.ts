import { expect, test } from "vitest";

import type { Row } from "../../lists/columns";
import { bestOf } from "./groups";

const row = (bestTrialSearcherMetric: number | null, smallerIsBetter = true, searcherMetric = "loss") =>
  ({ experiment: { bestTrialSearcherMetric, smallerIsBetter, searcherMetric } }) as Row;

test("the best of a group goes by the direction of its metric", () => {
  expect(bestOf([row(0.3), row(0.1), row(null)])).toEqual({ name: "loss", value: 0.1 });
  expect(bestOf([row(0.3, false, "accuracy"), row(0.9, false, "accuracy")])).toEqual({ name: "accuracy", value: 0.9 });
});

test("values of different metrics or directions have no best", () => {
  expect(bestOf([row(0.3), row(0.9, true, "error")])).toBeNull();
  expect(bestOf([row(0.3), row(0.9, false)])).toBeNull();
  expect(bestOf([row(null)])).toBeNull();
  expect(bestOf([])).toBeNull();
});
