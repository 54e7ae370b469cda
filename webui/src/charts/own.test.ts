import { expect, test } from "vitest";

import { readOwn, writeOwn } from "./own";

test("what is set for one chart is in the link, whatever the chart is called", () => {
  const all = new Map([
    ["a~b!c/d", { log: true, clip: true, range: [-1, 2.5] as [number, number] }],
    ["loss", { log: false, clip: false, range: null }],
  ]);
  expect(readOwn(writeOwn(all))).toEqual(all);
});

test("what is as everywhere is not written", () => {
  expect(writeOwn(new Map([["loss", { log: null, clip: false, range: null }]]))).toBe("");
  expect(readOwn(null).size).toBe(0);
});
