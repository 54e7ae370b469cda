/** A line's text with the colours that a script gave it, as stretches with class names; nothing in it is ever HTML. */

import Anser from "anser";

export interface Stretch {
  text: string;
  /** `f1` is red text, `g4` blue ground, `bold` and so on. */
  style: string;
}

// What moves a cursor, sets a title, makes a link or stands unfinished. Anser knows colours and weights alone.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it reads
const OTHER = /\x1b\[(?![0-9;:]*m)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b(?!\[[0-9;:]*m)[@-Z\\-_]?/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are shown as pictures
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** A control character in sight: as its picture. */
const pictured = (text: string) =>
  text.replace(CONTROL, (one) => String.fromCharCode(one === "\x7f" ? 0x2421 : 0x2400 + one.charCodeAt(0)));

/** Of 256 colours the first 16 are ours; others, and true colour, are left to the reader's theme. */
function colour(kind: string, name: string | null): string {
  const place = name ? COLOURS.indexOf(name.replace(/^ansi-(bright-)?/, "")) : -1;
  return place < 0 ? "" : `${kind}${place}`;
}

export function stretches(text: string): Stretch[] {
  if (!text.includes("\x1b")) return [{ text: pictured(text), style: "" }];
  // Anser takes what stands behind a carriage return for a line of its own.
  const clean = text.replaceAll("\r", "\u240d").replace(OTHER, "");
  return Anser.ansiToJson(clean, { use_classes: true, remove_empty: true }).map((part) => ({
    text: pictured(part.content),
    style: [...part.decorations, colour("f", part.fg), colour("g", part.bg)].filter(Boolean).join(" "),
  }));
}

/** The text alone. */
export const plain = (text: string) =>
  stretches(text)
    .map((one) => one.text)
    .join("");
