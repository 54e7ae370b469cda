import { expect, test } from "vitest";

import { plain, stretches } from "./paint";

test("colours and weights become styles, and end", () => {
  expect(stretches("a \x1b[1;31mred\x1b[0m b")).toEqual([
    { text: "a ", style: "" },
    { text: "red", style: "bold f1" },
    { text: " b", style: "" },
  ]);
  expect(stretches("\x1b[38;5;12mx\x1b[39m\x1b[48;2;1;2;3my\x1b[m\x1b[91mz")).toEqual([
    { text: "x", style: "f4" },
    { text: "y", style: "" },
    { text: "z", style: "f1" },
  ]);
});

test("cursor movements, window titles and incomplete escape sequences are removed", () => {
  expect(plain("\x1b[2K\x1b[1Gstep\x1b]0;title\x07 \x1b]8;;http://x\x1b\\link\x1b[")).toBe("step link[");
});

test("control characters are shown as symbols, and HTML stays text", () => {
  expect(plain("a\x00b\x07\tc\x7f")).toBe("a\u2400b\u2407\tc\u2421");
  expect(plain("\x1b[1m<b>&amp;\x1b[0m\rover")).toBe("<b>&amp;\u240dover");
});

test("a line of 100 kB is painted at once", () => {
  const long = "\x1b[32mx\x1b[0m ".repeat(10_000);
  expect(plain(long)).toHaveLength(20_000);
});
