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
  const found = scalesOf({ hyperparameters });
  expect(found.get("lr")!.kind).toBe("log");
  expect(found.get("lr")!.span![0]).toBeCloseTo(1e-4, 12);
  expect(found.get("model.depth")).toEqual({ kind: "int", span: [2, 12] });
  expect(found.get("model.act")).toEqual({ kind: "choice", span: null });
  expect(found.get("dropout")).toEqual({ kind: "linear", span: [0.05, 0.5] });
  expect([...found.keys()]).toHaveLength(4);
});
