import { expect, test } from "vitest";

import { placed, type Rule } from "./rules";

const rule = (at: number, axis = "batches"): Rule => ({ axis, at, label: `rung ${at}` });

test("vertical lines are placed on their own axis only", () => {
  const marks = placed([rule(50), rule(25), rule(400), rule(60, "time")], "batches", [0, 100], 1000);
  expect(marks.map(([rule, left]) => [rule.at, left])).toEqual([
    [25, 250],
    [50, 500],
  ]);
});

test("a label that would overlap the one before is left out", () => {
  const marks = placed([rule(10), rule(11), rule(90)], "batches", [0, 100], 1000);
  expect(marks.map(([, , named]) => named)).toEqual([true, false, true]);
});
