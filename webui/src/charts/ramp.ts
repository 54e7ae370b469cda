/** The theme's sequential colour scale: 0 is poor or low, 1 is good or high. */

import { css } from "./theme";

const STEPS = 7;
const parsed = new Map<string, number[]>();

function channels(step: number): number[] {
  const text = css(`--r${step}`);
  const before = parsed.get(text);
  if (before) return before;
  const channels = [...text.matchAll(/[\d.]+/g)].slice(0, 3).map(([digits]) => Number(digits));
  parsed.set(text, channels);
  return channels;
}

/** The canvas colour of a position on the scale. */
export function good(share: number): string {
  const place = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) * (STEPS - 1);
  const below = Math.min(STEPS - 2, Math.floor(place));
  const [from, to] = [channels(below + 1), channels(below + 2)];
  return `rgb(${from.map((channel, at) => Math.round(channel + (to[at]! - channel) * (place - below))).join(",")})`;
}

/** The canvas colour of a rank, for plots of a search: 0 is the best, 1 the worst. */
export const ramp = (share: number) => good(1 - share);

const SHARE = "share:";
/** The canvas colour of a line, given as a theme token, a position on the scale, or a CSS colour. */
export const inked = (colour: string) =>
  colour.startsWith("--") ? css(colour) : colour.startsWith(SHARE) ? good(Number(colour.slice(SHARE.length))) : colour;

/** Like `inked`, for CSS: the result follows the theme by itself. */
export function styled(colour: string): string {
  if (colour.startsWith("--")) return `var(${colour})`;
  if (!colour.startsWith(SHARE)) return colour;
  const place = Number(colour.slice(SHARE.length)) * (STEPS - 1);
  const below = Math.min(STEPS - 2, Math.floor(place));
  return `color-mix(in srgb, var(--r${below + 1}), var(--r${below + 2}) ${Math.round(100 * (place - below))}%)`;
}
