import { expect, test } from "vitest";

import { nearest } from "./nearest";

test("the nearest comes first, and distant names are left out", () => {
  expect(nearest("RUNING", ["COMPLETED", "RUNNING", "ERROR"])).toEqual(["RUNNING"]);
  expect(nearest("/experiment", ["/dashboard", "/experiments", "/jobs"])[0]).toBe("/experiments");
  expect(nearest("x".repeat(4000), ["RUNNING"])).toEqual([]);
});
