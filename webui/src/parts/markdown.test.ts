import { expect, test } from "vitest";

import { parts, safe } from "./markdown";

test("links lead to pages and mail, never into scripts", () => {
  expect(safe("https://example.org/a")).toBe("https://example.org/a");
  expect(safe("/det/experiments/1")).toBe("/det/experiments/1");
  for (const bad of ["javascript:alert(1)", "data:text/html,x", "//other.org", " https://x"]) expect(safe(bad)).toBeUndefined();
});

test("code, paragraphs and headings are parts of their own", () => {
  expect(parts("# Head\ntext\nmore\n\n- a\n- b\n```py\nx = 1\n\ny\n```\nend")).toEqual([
    { code: false, text: "# Head" },
    { code: false, text: "text\nmore" },
    { code: false, text: "- a\n- b" },
    { code: true, text: "x = 1\n\ny" },
    { code: false, text: "end" },
  ]);
});
