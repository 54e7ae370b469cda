/** How lines are drawn on a chart's canvas. */

import type uPlot from "uplot";

import type { Extent, Line } from "./lines";
import type { Mark } from "./plot";
import { inked } from "./ramp";
import { css } from "./theme";
import { scaleTo, spread, trace, traceBand, type To } from "./trace";

/** Number of lines whose ends are labelled, and the room for labels, in pixels. */
const LABELS = 12;
const [LETTER, LEAST_ROOM, MOST_ROOM] = [6.6, 22, 92];
/** The lines to label: if a trial has several groups, only the first one. */
export function labelled(lines: Line[]): Line[] {
  const front = lines.filter((line) => line.front);
  const once = front.filter((line, at) => front.findIndex((other) => other.trial === line.trial && other.short === line.short) === at);
  // A single line needs no label.
  return once.length <= LABELS && lines.length > 1 ? once : [];
}
export function roomFor(lines: Line[]): number {
  const named = labelled(lines);
  const longest = named.reduce((most, line) => Math.max(most, line.short.length), 0);
  return named.length ? Math.min(MOST_ROOM, LEAST_ROOM + longest * LETTER) : 14;
}
const POINTS = 60;
const BANDS = 12;
const EDGE = 8;

interface What {
  lines: Line[];
  extent: Extent;
  log: boolean;
  band: boolean;
  marks: Mark[];
}

export function paint(u: uPlot, what: What) {
  const { toX, toY } = scalesOf(u, what);
  within(u.ctx, u.bbox, () => {
    const alone = what.lines.every((line) => line.trial === what.lines[0]!.trial);
    const front = what.lines.filter((line) => line.front).length;
    for (const line of what.lines) {
      const alpha = line.front ? 1 : what.lines.length > 100 ? 0.5 : 0.75;
      draw(u, u.ctx, line, what.band && line.front && front <= BANDS, alpha, toX, toY, line.front ? 1.15 : 0.7, alone);
    }
    for (const mark of what.marks) star(u.ctx, toX(mark.x), toY(mark.y), 7 * devicePixelRatio);
  });
  labels(u.ctx, labelled(what.lines), roomFor(what.lines), toY, u.bbox, devicePixelRatio);
}

/** Draws the highlighted trial and a veil over all others, on a second canvas that exists only for that. */
export function paintLit(u: uPlot, what: What, lit: number | null) {
  const mine = lit === null ? [] : what.lines.filter((line) => line.trial === lit);
  const apart = mine.length > 0 && mine.length < what.lines.length;
  const ctx = canvasAbove(u, apart)?.getContext("2d");
  ctx?.reset();
  if (!ctx || !apart) return;
  const { toX, toY } = scalesOf(u, what);
  within(ctx, u.bbox, () => {
    ctx.fillStyle = css("--surface");
    ctx.globalAlpha = 0.75;
    ctx.fillRect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.globalAlpha = 1;
    for (const line of mine) draw(u, ctx, line, what.band, 1, toX, toY, 1.8);
    for (const mark of what.marks) if (mark.trial === lit) star(ctx, toX(mark.x), toY(mark.y), 7 * devicePixelRatio);
  });
}

/** A canvas of the chart's size, present only while it is needed. */
function canvasAbove(u: uPlot, needed: boolean): HTMLCanvasElement | null {
  const below = u.ctx.canvas;
  const { nextElementSibling: next } = below;
  const before = next instanceof HTMLCanvasElement ? next : null;
  if (needed && before?.width === below.width && before.height === below.height) return before;
  before?.remove();
  if (!needed) return null;
  const made = below.cloneNode() as HTMLCanvasElement;
  Object.assign(made.style, { position: "absolute", inset: "0", pointerEvents: "none" });
  below.after(made);
  return made;
}

const scalesOf = ({ bbox }: uPlot, { extent, log }: What) => ({
  toX: scaleTo(extent.x, bbox.left, bbox.left + bbox.width),
  toY: scaleTo(extent.y, bbox.top + bbox.height, bbox.top, log),
});

function within(ctx: CanvasRenderingContext2D, { left, top, width, height }: uPlot.BBox, act: () => void) {
  ctx.save();
  ctx.beginPath();
  // Points on the edge, such as the first point or the star of the best, are shown whole.
  const more = EDGE * devicePixelRatio;
  ctx.rect(left - more, top - more, width + 2 * more, height + 2 * more);
  ctx.clip();
  ctx.lineJoin = "round";
  act();
  ctx.restore();
}

function draw(
  u: uPlot,
  ctx: CanvasRenderingContext2D,
  line: Line,
  banded: boolean,
  alpha: number,
  toX: To,
  toY: To,
  width: number,
  alone = false,
) {
  const ratio = devicePixelRatio;
  if (banded) band(ctx, line, toX, toY);
  if (line.pale) stroke(ctx, line, line.pale, toX, toY, ratio, 0.3);
  stroke(ctx, line, line.ys, toX, toY, width * ratio, alpha);
  points(ctx, line, toX, toY, ratio, alone);
  gaps(ctx, line, toX, u.bbox.top + u.bbox.height, ratio);
  ending(ctx, line, toX, toY, ratio);
}

function band(ctx: CanvasRenderingContext2D, line: Line, toX: To, toY: To) {
  const before = ctx.globalAlpha;
  ctx.beginPath();
  traceBand(ctx, line, toX, toY);
  ctx.fillStyle = inked(line.colour);
  ctx.globalAlpha = before * 0.22;
  ctx.fill();
  ctx.globalAlpha = before;
}

function stroke(ctx: CanvasRenderingContext2D, line: Line, ys: (number | null)[], toX: To, toY: To, width: number, alpha: number) {
  const before = ctx.globalAlpha;
  ctx.beginPath();
  trace(ctx, line.xs, ys, toX, toY);
  ctx.strokeStyle = inked(line.colour);
  // If x is not monotone, a thin line shows the order of the batches.
  ctx.lineWidth = 1.5 * width * (line.monotone ? 1 : 0.5);
  ctx.globalAlpha = before * alpha;
  ctx.setLineDash(line.dash.map((length) => length * devicePixelRatio));
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.globalAlpha = before;
}

function points(ctx: CanvasRenderingContext2D, line: Line, toX: To, toY: To, ratio: number, alone: boolean) {
  if (line.monotone && (line.xs.length > POINTS || (!alone && line.xs.length > 1))) return;
  ctx.fillStyle = inked(line.colour);
  const values = line.pale ?? line.ys;
  line.xs.forEach((x, at) => {
    const y = values[at];
    if (y === null || y === undefined) return;
    ctx.beginPath();
    ctx.arc(toX(x), toY(y), 2.2 * ratio, 0, 7);
    ctx.fill();
  });
}

/** A cross at the foot of the chart, where a value was reported that is not a finite number. */
function gaps(ctx: CanvasRenderingContext2D, line: Line, toX: To, bottom: number, ratio: number) {
  if (!line.nonFinite) return;
  ctx.strokeStyle = css("--error");
  ctx.lineWidth = 1.4 * ratio;
  ctx.beginPath();
  line.gaps.forEach((count, at) => {
    if (count) cross(ctx, toX(line.xs[at]!), bottom - 5 * ratio, 3.5 * ratio);
  });
  ctx.stroke();
}

function cross(ctx: CanvasRenderingContext2D, x: number, y: number, size: number) {
  ctx.moveTo(x - size, y - size);
  ctx.lineTo(x + size, y + size);
  ctx.moveTo(x - size, y + size);
  ctx.lineTo(x + size, y - size);
}

/** A failed trial ends in a cross; one that the search stopped ends in a bar. */
function ending(ctx: CanvasRenderingContext2D, line: Line, toX: To, toY: To, ratio: number) {
  if (!line.end) return;
  const at = line.ys.findLastIndex((y) => y !== null);
  if (at < 0) return;
  const [x, y] = [toX(line.xs[at]!), toY(line.ys[at]!)];
  ctx.strokeStyle = line.end === "failed" ? css("--error") : inked(line.colour);
  ctx.lineWidth = 2 * ratio;
  ctx.beginPath();
  if (line.end === "failed") cross(ctx, x, y, 4 * ratio);
  else {
    ctx.moveTo(x, y - 4 * ratio);
    ctx.lineTo(x, y + 4 * ratio);
  }
  ctx.stroke();
}

function star(ctx: CanvasRenderingContext2D, x: number, y: number, size: number) {
  ctx.beginPath();
  for (let at = 0; at < 10; at++) {
    const reach = at % 2 ? size * 0.45 : size;
    ctx.lineTo(x + reach * Math.sin((at * Math.PI) / 5), y - reach * Math.cos((at * Math.PI) / 5));
  }
  ctx.closePath();
  ctx.fillStyle = css("--accent");
  ctx.strokeStyle = css("--surface");
  ctx.lineWidth = devicePixelRatio;
  ctx.fill();
  ctx.stroke();
}

function labels(ctx: CanvasRenderingContext2D, lines: Line[], room: number, toY: To, bbox: uPlot.BBox, ratio: number) {
  const ended = lines.flatMap((line) => {
    const y = line.ys.findLast((y) => y !== null);
    return y === null || y === undefined ? [] : [{ line, top: toY(y) }];
  });
  const places = spread(
    ended.map((label) => label.top),
    14 * ratio,
    bbox.top + 5 * ratio,
    bbox.top + bbox.height - 5 * ratio,
  );
  ctx.save();
  ctx.font = `550 ${11 * ratio}px ${FONT}`;
  ctx.textBaseline = "middle";
  ended.forEach(({ line }, at) => {
    const left = bbox.left + bbox.width + 6 * ratio;
    ctx.fillStyle = css("--ink-2");
    ctx.fillText(line.short, left + 11 * ratio, places[at]!, (room - 17) * ratio);
    ctx.fillStyle = inked(line.colour);
    ctx.beginPath();
    ctx.roundRect(left, places[at]! - 4 * ratio, 8 * ratio, 8 * ratio, 2 * ratio);
    ctx.fill();
  });
  ctx.restore();
}

export const FONT = '"Inter Variable", Inter, system-ui, sans-serif';
