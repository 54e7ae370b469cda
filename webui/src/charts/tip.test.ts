import { expect, test } from "vitest";

import { type Line, toLines } from "./lines";
import { valuesAt } from "./tip";

const lines = (count: number, front: (trial: number) => boolean = () => true): Line[] =>
  toLines(
    Array.from({ length: count }, (_, at) => ({
      trialId: at + 1,
      group: "validation",
      name: "loss",
      count: 2,
      nonFinite: 0,
      raw: true,
      x: [0, 10],
      batches: [0, 10],
      last: [at, at],
    })),
    Array.from({ length: count }, (_, at) => ({ id: at + 1, startTime: "" })),
    { weight: 0 },
  ).map((line) => ({ ...line, front: front(line.trial) }));
const trials = (values: { line: Line }[]) => values.map(({ line }) => line.trial);

test("at most twelve values, the best first", () => {
  expect(trials(valuesAt(lines(30), 4, true, null))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(trials(valuesAt(lines(30), 4, false, null)).slice(0, 2)).toEqual([30, 29]);
});

test("the highlighted line is included even if it is not chosen", () => {
  expect(trials(valuesAt(lines(30), 4, true, 25))).toContain(25);
  const few = lines(30, (trial) => trial === 3);
  expect(trials(valuesAt(few, 4, true, 25))).toEqual([3, 25]);
  expect(trials(valuesAt(few, 4, true, null))).toEqual([3]);
});

test("a line has no value beyond its ends", () => expect(valuesAt(lines(3), 11, true, null)).toEqual([]));
