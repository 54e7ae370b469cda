import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import { Markdown, safe } from "./markdown";

const html = (text: string) => renderToStaticMarkup(<Markdown text={text} />);

test("notes become headings, lists, tables, code and links", () => {
  const page = html("# Head\n\n- one\n- [x] two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n`x`\n\n[here](https://example.org)");
  for (const part of ["<h3>Head</h3>", "<li>one</li>", "<td>2</td>", "<code>x</code>", 'href="https://example.org"'])
    expect(page).toContain(part);
});

test("HTML stays text, images are not loaded, and links lead only to pages and mail", () => {
  const page = html("<b onclick='x'>bold</b> <script>alert(1)</script> [bad](javascript:alert(1)) ![p](https://x.org/a.png)");
  expect(page).not.toMatch(/<b |<script|<img|href="javascript/);
  expect(page).toContain("&lt;script&gt;");
  expect(["javascript:x", "data:text/html,x", "//evil.org", "ftp://x"].map(safe)).toEqual(["", "", "", ""]);
  expect(safe("/det/experiments/1")).toBe("/det/experiments/1");
});
