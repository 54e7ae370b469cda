import { expect, test } from "vitest";

import { scalesOf } from "./scales";

test("each hyperparameter has the scale that the configuration gives it", () => {
  const hyperparameters = {
    lr: { type: "log", base: 10, minval: -4, maxval: -1 },
    model: { depth: { type: "int", minval: 2, maxval: 12 }, act: { type: "categorical", vals: ["relu", "tanh"] } },
    dropout: { type: "double", minval: 0.05, maxval: 0.5 },
    batch: 32,
    fixed: { type: "const", val: 3 },
    list: [1, 2],
  };
  const scales = scalesOf({ hyperparameters });
  expect(scales.get("lr")!.kind).toBe("log");
  expect(scales.get("lr")!.span![0]).toBeCloseTo(1e-4, 12);
  expect(scales.get("model.depth")).toEqual({ kind: "int", span: [2, 12] });
  expect(scales.get("model.act")).toEqual({ kind: "choice", span: null });
  expect(scales.get("dropout")).toEqual({ kind: "linear", span: [0.05, 0.5] });
  expect([...scales.keys()]).toHaveLength(4);
});
