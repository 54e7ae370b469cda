import { expect, test } from "vitest";

import { asConfigured, changed, lengthOf, readChanges, wrongLength } from "./lengths";

test.each([500, { batches: 500 }, { epochs: 3 }])("a length keeps its notation: %j", (length) => {
  expect(asConfigured(lengthOf(length))).toEqual(length);
});

test("a trial can only continue to more than it has", () => {
  expect(wrongLength("100000", 120_000)).toBe("It has already reached 120,000. Enter more than that.");
  expect(wrongLength("", 1)).toMatch("whole number");
  expect(wrongLength("1.5", 1)).toMatch("whole number");
  expect(wrongLength("120001", 120_000)).toBe("");
});

test("changes are lines of name and value, each with its own error", () => {
  expect(readChanges("lr: 1e-4\n\n optimizer.name: lion\nlayers: [1, 2]\non: true").changes).toEqual({
    lr: 1e-4,
    "optimizer.name": "lion",
    layers: [1, 2],
    on: true,
  });
  expect(readChanges("lr 3").error).toBe("Line 1: write it as name: value.");
});

test("nested hyperparameters are found, and unknown names are reported", () => {
  const before = { optimizer: { lr: { type: "const", val: 1 } }, "a.b": 2 };
  const { made, unknown } = changed(before, { "optimizer.lr": 3, "a.b": 4, nothing: 5 });
  expect(made).toEqual({ optimizer: { lr: 3 }, "a.b": 4 });
  expect(unknown).toEqual(["nothing"]);
  expect(before.optimizer.lr).toEqual({ type: "const", val: 1 });
});
