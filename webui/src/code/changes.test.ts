import { expect, test } from "vitest";

import { fields, lines, short } from "./changes";

test("lines that were added, removed and kept", () => {
  const compared = lines("a\nb\nc\nd", "a\nx\nc\ne\nd");
  expect(compared.map((line) => `${line.kind[0]}${line.text}`)).toEqual(["sa", "db", "ax", "sc", "ae", "sd"]);
  expect(lines("same", "same")).toEqual([{ kind: "same", text: "same" }]);
});

test("only lines near a difference are shown", () => {
  const many = Array.from({ length: 20 }, (_, at) => `line ${at}`);
  const compared = short(lines(`${many.join("\n")}\n`, `${[...many, "new"].join("\n")}\n`));
  expect(compared.at(-1)).toEqual({ kind: "add", text: "new" });
  expect(compared.length).toBeLessThan(7);
  expect(short(lines("a\nb", "a\nb"))).toEqual([]);
});

test("fields that differ", () => {
  expect(fields({ a: 1, b: [1] }, { a: 2, b: [1], c: 3 })).toEqual([
    ["a", 1, 2],
    ["c", undefined, 3],
  ]);
});
