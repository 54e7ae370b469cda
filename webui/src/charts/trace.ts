/** Lines as strokes, on a canvas or in an exported drawing. */

import type { Line } from "./lines";

/** A target to draw to: a canvas path, or the text of an SVG path. */
export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}
export type To = (value: number) => number;

/** A linear or logarithmic mapping of values to pixels. */
export function scaleTo([low, high]: [number, number], from: number, to: number, log = false): To {
  const map = log ? (value: number) => Math.log(Math.max(value, Number.MIN_VALUE)) : (value: number) => value;
  const factor = (to - from) / (map(high) - map(low) || 1);
  const start = map(low);
  return (value) => from + (map(value) - start) * factor;
}

/** A line that breaks at each null; a single point between two breaks becomes a short dash, to be visible. */
export function trace(pen: Pen, xs: number[], ys: (number | null)[], toX: To, toY: To) {
  let open = false;
  for (let at = 0; at < xs.length; at++) {
    const y = ys[at];
    if (y === null || y === undefined) {
      open = false;
      continue;
    }
    const [left, top] = [toX(xs[at]!), toY(y)];
    if (open) pen.lineTo(left, top);
    else {
      pen.moveTo(left, top);
      if (ys[at + 1] === null || ys[at + 1] === undefined) pen.lineTo(left + 0.5, top);
    }
    open = true;
  }
}

/** The area between minimum and maximum: one closed part per stretch without a gap. */
export function traceBand(pen: Pen, line: Line, toX: To, toY: To) {
  const { xs, low, high } = line;
  if (!low || !high) return;
  for (let start = 0; start < xs.length; ) {
    let end = start;
    while (end < xs.length && high[end] !== null && low[end] !== null) end++;
    for (let at = start; at < end; at++) {
      if (at === start) pen.moveTo(toX(xs[at]!), toY(high[at]!));
      else pen.lineTo(toX(xs[at]!), toY(high[at]!));
    }
    for (let at = end - 1; at >= start; at--) pen.lineTo(toX(xs[at]!), toY(low[at]!) + 1);
    start = Math.max(end, start) + 1;
  }
}

/** Places labels without overlap: as near to `wanted` as `gap` allows, within `low` and `high`. */
export function spread(wanted: number[], gap: number, low: number, high: number): number[] {
  const order = wanted.map((_, at) => at).sort((a, b) => wanted[a]! - wanted[b]!);
  const placed = [...wanted];
  let before = low - gap;
  for (const at of order) before = placed[at] = Math.max(wanted[at]!, before + gap);
  let after = high + gap;
  for (const at of order.reverse()) after = placed[at] = Math.min(placed[at]!, after - gap);
  return placed;
}

export class SvgPen implements Pen {
  private parts: string[] = [];
  moveTo(x: number, y: number) {
    this.parts.push(`M${x.toFixed(2)},${y.toFixed(2)}`);
  }
  lineTo(x: number, y: number) {
    this.parts.push(`L${x.toFixed(2)},${y.toFixed(2)}`);
  }
  toString() {
    return this.parts.join("");
  }
}
