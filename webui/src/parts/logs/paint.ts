/**
 * A line's text with the colours that the script gave it, as spans with class names; no part of it is ever treated as
 * HTML.
 */

import Anser from "anser";

export interface Stretch {
  text: string;
  /** `f1` is red text, `g4` blue background, `bold` and so on. */
  style: string;
}

// Escape sequences that move the cursor, set a title or make a link, and incomplete ones. Anser handles only colours
// and weights.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
const OTHER = /\x1b\[(?![0-9;:]*m)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b(?!\[[0-9;:]*m)[@-Z\\-_]?/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are shown as symbols
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** A control character as its symbol. */
const pictured = (text: string) =>
  text.replace(CONTROL, (character) => String.fromCharCode(character === "\x7f" ? 0x2421 : 0x2400 + character.charCodeAt(0)));

/** The first 16 of the 256 colours are ours; the others, and true colour, become the theme's text colour. */
function colour(kind: string, name: string | null): string {
  const place = name ? COLOURS.indexOf(name.replace(/^ansi-(bright-)?/, "")) : -1;
  return place < 0 ? "" : `${kind}${place}`;
}

export function stretches(text: string): Stretch[] {
  if (!text.includes("\x1b")) return [{ text: pictured(text), style: "" }];
  // Anser starts a new line after a carriage return, so show it as a symbol.
  const clean = text.replaceAll("\r", "\u240d").replace(OTHER, "");
  return Anser.ansiToJson(clean, { use_classes: true, remove_empty: true }).map((part) => ({
    text: pictured(part.content),
    style: [...part.decorations, colour("f", part.fg), colour("g", part.bg)].filter(Boolean).join(" "),
  }));
}

/** The text without styles. */
export const plain = (text: string) =>
  stretches(text)
    .map((stretch) => stretch.text)
    .join("");
