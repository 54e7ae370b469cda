/** Finds which of thousands of trials the pointer is at. */

import { type Axis, placeOf } from "./axes";
import type { Row } from "./rows";

/** Positions of the rows on each axis, 0 to 1; NaN if a row has no value there. */
export const placesOn = (axes: Axis[], rows: Row[]): Float64Array[] =>
  axes.map((axis) => Float64Array.from(rows, (row) => placeOf(axis, row) ?? NaN));

/** The pixels of positions 0 and 1 in a drawing. */
export type Ends = [number, number];

/** Index of the spot nearest to a point and less than `reach` pixels away; -1 if there is none. */
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
 * Index of the line over parallel axes that is vertically nearest to a point and less than `reach` pixels away; -1 if
 * there is none.
 *
 * `columns` holds the positions on each axis and `across` the x of each axis; lines in `skip` are ignored.
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
  const right = across.findIndex((position) => position >= x);
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

/** The curve between two axes: how far the line has risen, 0 to 1, at a horizontal position from 0 to 1. */
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
