/** The sequential scale of the theme: 0 poor or low, 1 good or high. */

import { css } from "./theme";

const STEPS = 7;
const parsed = new Map<string, number[]>();

function channels(step: number): number[] {
  const text = css(`--r${step}`);
  const before = parsed.get(text);
  if (before) return before;
  const found = [...text.matchAll(/[\d.]+/g)].slice(0, 3).map(([one]) => Number(one));
  parsed.set(text, found);
  return found;
}

/** How a share of the scale looks on a canvas. */
export function good(share: number): string {
  const place = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) * (STEPS - 1);
  const below = Math.min(STEPS - 2, Math.floor(place));
  const [from, to] = [channels(below + 1), channels(below + 2)];
  return `rgb(${from.map((one, at) => Math.round(one + (to[at]! - one) * (place - below))).join(",")})`;
}

/** By rank or badness, as plots of a search have it: 0 the best to 1 the worst. */
export const ramp = (share: number) => good(1 - share);

const SHARE = "share:";
/** A colour of a line as canvases take it: a token of the theme, a share of the scale, or as it stands. */
export const inked = (colour: string) =>
  colour.startsWith("--") ? css(colour) : colour.startsWith(SHARE) ? good(Number(colour.slice(SHARE.length))) : colour;

/** The same as styles of elements take it: they turn with the theme by themselves. */
export function styled(colour: string): string {
  if (colour.startsWith("--")) return `var(${colour})`;
  if (!colour.startsWith(SHARE)) return colour;
  const place = Number(colour.slice(SHARE.length)) * (STEPS - 1);
  const below = Math.min(STEPS - 2, Math.floor(place));
  return `color-mix(in srgb, var(--r${below + 1}), var(--r${below + 2}) ${Math.round(100 * (place - below))}%)`;
}
