import { expect, test } from "vitest";

import { nth } from "../../parts/format";

test.each([
  [1, "1st"],
  [2, "2nd"],
  [3, "3rd"],
  [4, "4th"],
  [11, "11th"],
  [12, "12th"],
  [21, "21st"],
  [112, "112th"],
  [123, "123rd"],
  [1000, "1,000th"],
])("the %i in words is %s", (place, words) => expect(nth(place)).toBe(words));
