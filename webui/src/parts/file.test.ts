import { expect, test } from "vitest";

import cells from "./cells.json";
import { csv, harmless } from "./file";

test("cells are quoted, and what looks like a formula stays text", () => {
  expect(
    csv([
      ["a", "b"],
      [1.5, 'say "x"'],
      [null, "=1+1"],
      [["x"], "-2"],
      [-2, ""],
    ]),
  ).toBe('"a","b"\n1.5,"say ""x"""\n,"\'=1+1"\n"[""x""]","-2"\n-2,""\n');
});

test("texts are written as the services and det write them", () => {
  for (const [text, written] of cells) expect(harmless(text!)).toBe(written);
});
