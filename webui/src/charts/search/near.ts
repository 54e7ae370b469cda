/** Which of thousands of trials the pointer is at. */

import { type Axis, placeOf } from "./axes";
import type { Row } from "./rows";

/** Where rows lie on each axis, from 0 to 1; NaN where a row has no value there. */
export const placesOn = (axes: Axis[], rows: Row[]): Float64Array[] =>
  axes.map((axis) => Float64Array.from(rows, (row) => placeOf(axis, row) ?? NaN));

/** Where places 0 and 1 are in a drawing, in pixels. */
export type Ends = [number, number];

/** The spot nearest to a point, less than `reach` pixels away; -1 when there is none. */
export function nearestSpot(
  xs: Float64Array,
  ys: Float64Array,
  [left, right]: Ends,
  [bottom, top]: Ends,
  x: number,
  y: number,
  reach: number,
): number {
  let [best, least] = [-1, reach * reach];
  for (let at = 0; at < xs.length; at++) {
    const across = left + xs[at]! * (right - left) - x;
    const up = bottom + ys[at]! * (top - bottom) - y;
    const away = across * across + up * up;
    if (away < least) [best, least] = [at, away];
  }
  return best;
}

/**
 * The line over parallel axes nearest to a point, measured up and down, less than `reach` pixels away; -1 when there is none.
 *
 * `columns` are the places on each axis, `across` says where the axes stand, and lines that `skip` are left out.
 */
export function nearestLine(
  columns: Float64Array[],
  across: number[],
  [bottom, top]: Ends,
  x: number,
  y: number,
  reach: number,
  skip: (at: number) => boolean,
): number {
  const right = across.findIndex((one) => one >= x);
  if (right < 1) return -1;
  const [from, to] = [columns[right - 1]!, columns[right]!];
  const share = eased((x - across[right - 1]!) / (across[right]! - across[right - 1]!));
  let [best, least] = [-1, reach];
  for (let at = 0; at < from.length; at++) {
    const place = from[at]! + share * (to[at]! - from[at]!);
    const away = Math.abs(bottom + place * (top - bottom) - y);
    if (away < least && !skip(at)) [best, least] = [at, away];
  }
  return best;
}

/** How far up a line is, as a share of its way, where it is that far across: the curve that is drawn between two axes. */
export function eased(across: number): number {
  let [low, high] = [0, 1];
  for (let step = 0; step < 16; step++) {
    const t = (low + high) / 2;
    if (1.5 * t * (1 - t) + t ** 3 < across) low = t;
    else high = t;
  }
  const t = (low + high) / 2;
  return t * t * (3 - 2 * t);
}
