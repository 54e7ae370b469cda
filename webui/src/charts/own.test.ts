import { expect, test } from "vitest";

import { readOwn, writeOwn } from "./own";

test("settings of one chart are in the link, whatever the metric is called", () => {
  const all = new Map([
    ["a~b!c/d", { log: true, clip: true, range: [-1, 2.5] as [number, number] }],
    ["loss", { log: false, clip: false, range: null }],
  ]);
  expect(readOwn(writeOwn(all))).toEqual(all);
});

test("default settings are not written", () => {
  expect(writeOwn(new Map([["loss", { log: null, clip: false, range: null }]]))).toBe("");
  expect(readOwn(null).size).toBe(0);
});
