import { expect, test } from "vitest";

import { apart } from "./axes";

const label = (text: string, middle: number, half = 20) => ({ text, middle, half });
const texts = (...labels: ReturnType<typeof label>[]) => apart(labels).map(({ text }) => text);

test("a label that would run into the one before it is left out", () => {
  expect(texts(label("-0.093", 20), label("-0.08", 45), label("-0.06", 90), label("-0.02", 170), label("6.9e-3", 195))).toEqual([
    "-0.093",
    "-0.06",
    "-0.02",
  ]);
});

test("labels may come in any order, and all stay where there is room", () => {
  expect(texts(label("1e-2", 100), label("1e-1", 200), label("0.0011", 10))).toEqual(["0.0011", "1e-2", "1e-1"]);
});
