/**
 * Cuts the Inter font to what the pages show: Latin-1 and some signs, the weights 400 to 700, and the features in use.
 * Any other character has the system's font. `npm run build` and `npm run dev` run this first.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

import subsetFont from "subset-font";

const SOURCE = "node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2";
const CUT = "build/inter.woff2";
/** Printable characters of ASCII and of Latin-1. */
const RANGES = [
  [0x20, 0x7e],
  [0xa0, 0xff],
];
const SIGNS = "ŒœŸ‘’“”–—…′″•±×≠≤≥−←↑→↓⌘€™";
/** Kerning, digits of one width, and forms that depend on what is beside them, such as the colon of a time. */
const FEATURES = ["kern", "tnum", "calt", "ccmp"];
const WEIGHTS = { min: 400, max: 700 };

const latin = RANGES.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => String.fromCodePoint(first + at)));
const cut = await subsetFont(readFileSync(SOURCE), latin.join("") + SIGNS, {
  targetFormat: "woff2",
  keepFeatures: FEATURES,
  variationAxes: { wght: WEIGHTS },
});
mkdirSync("build", { recursive: true });
writeFileSync(CUT, cut);
console.log(`${CUT}: ${cut.length} bytes`);
