import { expect, test } from "vitest";

import { slotsOf } from "./slots";

const NONE = new Map<string, number>();

test("rows that stay keep their slot, wherever they are among the others", () => {
  const before = slotsOf(NONE, ["a", "b", "c"]);
  expect([...before]).toEqual([
    ["a", 0],
    ["b", 1],
    ["c", 2],
  ]);
  const after = slotsOf(before, ["new", "a", "b", "c"]);
  expect(after).toEqual(new Map([...before, ["new", 3]]));
});

test("new rows reuse the slots of rows that left, so there are never more slots than rows were visible at once", () => {
  let slots = slotsOf(NONE, [0, 1, 2, 3]);
  for (let from = 1; from < 100; from += 1) {
    const ids = [from, from + 1, from + 2, from + 3];
    slots = slotsOf(slots, ids);
    expect([...slots.keys()]).toEqual(ids);
    expect(new Set(slots.values())).toEqual(new Set([0, 1, 2, 3]));
  }
});

test("no two rows share a slot", () => {
  const slots = slotsOf(slotsOf(NONE, ["a", "b"]), ["c", "d", "e", "b"]);
  expect(new Set(slots.values()).size).toBe(4);
});
