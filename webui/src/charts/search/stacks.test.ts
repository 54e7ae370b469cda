import { expect, test } from "vitest";

import { stacked } from "./stacks";

test("dots at the same position are stacked", () => expect(stacked([14, 14.5, 40, 14], 7, 36)).toEqual([0, 7, 0, 14]));

test("two thousand dots stay within their room", () => {
  const ys = stacked(
    Array.from({ length: 2000 }, (_, at) => (at * 37) % 300),
    7,
    36,
  );
  expect(Math.max(...ys)).toBeLessThan(36);
  expect(new Set(ys).size).toBeGreaterThan(10);
});
