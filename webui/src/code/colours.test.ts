import { expect, test } from "vitest";

import { languageOf, tokensOf } from "./colours";

test("a token that spans several lines keeps its colour on each", () => {
  const tokens = tokensOf('def f():\n    """one\n    two"""\n    return 1', "python");
  expect(tokens.map((line) => line.map((token) => token.text).join(""))).toEqual(["def f():", '    """one', '    two"""', "    return 1"]);
  expect(tokens[2]!.find((token) => token.text.includes("two"))!.scope).toBe("string");
  expect(tokens[3]!.find((token) => token.text === "return")!.scope).toBe("keyword");
});

test("HTML stays text, and very long or unknown files stay plain", () => {
  expect(tokensOf("<b>&amp;", "").flat()).toEqual([{ text: "<b>&amp;", scope: "" }]);
  expect(tokensOf(`x = 1 # ${"a".repeat(300_000)}`, "python").flat()).toHaveLength(1);
  expect(["a/train.py", "c.YAML", "run.sh", "Makefile"].map(languageOf)).toEqual(["python", "yaml", "bash", ""]);
});
