/** Turns series into the lines of a chart. */

import { duration, number } from "../parts/format";
import { REST, slotColour, slotDash, SLOTS } from "./colours";
import type { Look, Looks } from "./looks";
import type { Series } from "./series";
import { smooth } from "./smooth";

export interface Line {
  key: string;
  trial: number;
  group: string;
  label: string;
  /** Label at the end of the line. */
  short: string;
  /** A theme token, or a position on the colour scale. */
  colour: string;
  dash: number[];
  xs: number[];
  /** The values drawn; null in a bucket without a finite value. */
  ys: (number | null)[];
  /** The unsmoothed values, drawn pale; null without smoothing. */
  pale: (number | null)[] | null;
  low: (number | null)[] | null;
  high: (number | null)[] | null;
  batches: number[];
  gaps: number[];
  nonFinite: number;
  count: number;
  monotone: boolean;
  /** Drawn above the others, thick, with its name at the end. */
  front: boolean;
  /** How the trial ended, if it failed or the search stopped it; otherwise empty. */
  end: "" | "failed" | "stopped";
  from: Series;
}

export interface Known {
  id: number;
  startTime: string;
  end?: Line["end"];
  /** Name of the trial, if the chart has several. */
  label?: string;
}

/** Dash of every group but the most important one. */
const DOTTED = [1.5, 3];
const FIRST = ["validation", "training"];

/**
 * Groups in order of precedence: the dash of each follows from its place, and so does its colour if there is only one
 * trial.
 */
export const ordered = (groups: Iterable<string>) => [...new Set(groups)].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
const place = (group: string) => (FIRST.includes(group) ? FIRST.indexOf(group) : FIRST.length);

/**
 * With a single trial, groups have colours of their own: training the first, validation the second. Charts without
 * them, such as those of machines, begin with the first colour.
 */
const ALONE: Record<string, number> = { training: 1, validation: 2 };
function aloneSlot(group: string, groups: string[]): number {
  const others = groups.filter((group) => !(group in ALONE));
  const from = others.length < groups.length ? 3 : 1;
  return ALONE[group] ?? from + (others.indexOf(group) % (SLOTS + 1 - from));
}

/** The word for a group: what machines report is grouped by a prefix that says nothing to readers. */
const groupWord = (group: string) => group.replace(/^profile\./, "");

const PLAIN: Look = { colour: REST, dash: [], front: false, why: "" };

export interface Style {
  /** Seconds since each trial's start instead of the time of day. */
  sinceStart?: boolean;
  /** 0 to 0.99; see `smooth`. */
  weight: number;
}

/** Lines of trials; those in front come last, so that they are drawn above the others. */
export function toLines(series: Series[], trials: Known[], style: Style, looks: Looks = new Map()): Line[] {
  const byId = new Map(trials.map((trial) => [trial.id, trial]));
  const groups = ordered(series.map((series) => series.group));
  const alone = trials.length === 1;
  const lines = series
    .filter((series) => series.x.length && byId.has(series.trialId))
    .map((series) => {
      const trial = byId.get(series.trialId)!;
      const look = looks.get(series.trialId) ?? PLAIN;
      const slot = aloneSlot(series.group, groups);
      const start = style.sinceStart ? Date.parse(trial.startTime) / 1000 : 0;
      const xs = start ? series.x.map((x) => x - start) : series.x;
      const smoothed = style.weight > 0 ? smooth(xs, series.mean ?? series.last, style.weight) : null;
      const label = trial.label ?? `trial ${trial.id}`;
      return {
        key: `${series.trialId} ${series.group} ${series.name}`,
        trial: series.trialId,
        group: series.group,
        label: alone ? groupWord(series.group) : groups.length > 1 ? `${label} ${groupWord(series.group)}` : label,
        short: alone ? groupWord(series.group) : String(trial.id),
        colour: alone ? slotColour(slot) : look.colour,
        dash: alone ? slotDash(slot) : series.group === groups[0] ? look.dash : DOTTED,
        front: alone || look.front,
        xs,
        ys: smoothed ?? series.last,
        pale: smoothed ? series.last : null,
        low: series.min ?? null,
        high: series.max ?? null,
        batches: series.batches,
        gaps: series.gaps ?? series.last.map((value) => (value === null ? 1 : 0)),
        nonFinite: series.nonFinite,
        count: series.count,
        monotone: series.monotone !== false,
        end: trial.end ?? "",
        from: series,
      };
    });
  return lines.sort((a, b) => Number(a.front) - Number(b.front));
}

export interface Extent {
  x: [number, number];
  y: [number, number];
}

/** Range of the drawn values without the lowest and the highest percent. */
export function clipped(lines: Line[], log: boolean): [number, number] | null {
  const values = lines.flatMap((line) => (line.pale ?? line.ys).filter((value): value is number => value !== null && (!log || value > 0)));
  if (values.length < 20) return null;
  const sorted = Float64Array.from(values).sort();
  const [low, high] = [sorted[Math.floor(sorted.length / 100)]!, sorted[Math.ceil((sorted.length * 99) / 100) - 1]!];
  return low < high ? [low, high] : null;
}

/** What the axes must cover; with `log`, only positive y. Null if there is nothing to show. */
export function extent(lines: Line[], log: boolean, band: boolean): Extent | null {
  const [x, y] = [new Span(), new Span()];
  for (const line of lines) {
    for (const value of line.xs) x.add(value);
    const columns = [line.ys, line.pale, ...(band ? [line.low, line.high] : [])];
    for (const column of columns) for (const value of column ?? []) if (value !== null && (!log || value > 0)) y.add(value);
  }
  if (x.low > x.high) return null;
  return { x: x.wide(0, false), y: y.low > y.high ? [log ? 0.1 : 0, 1] : y.wide(0.05, log) };
}

class Span {
  low = Infinity;
  high = -Infinity;
  add(value: number) {
    if (value < this.low) this.low = value;
    if (value > this.high) this.high = value;
  }
  /** Adds a margin, as a share of the range, and makes sure that the range is not empty. */
  wide(margin: number, log: boolean): [number, number] {
    if (log) {
      const more = margin * Math.log(this.high / this.low) || Math.log(2);
      return [this.low / Math.exp(more), this.high * Math.exp(more)];
    }
    const span = this.high - this.low;
    const more = span > 0 ? margin * span : Math.abs(this.low) * 0.1 || 1;
    return [this.low - more, this.high + more];
  }
}

/** Index of the entry nearest to a value in an ascending list; -1 for an empty list. */
export function nearest(xs: ArrayLike<number>, x: number): number {
  let [low, high] = [0, xs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle]! <= x) low = middle;
    else high = middle;
  }
  return high >= 0 && Math.abs(xs[high]! - x) < Math.abs(xs[low]! - x) ? high : high < 0 ? -1 : low;
}

/** Index of the point of a line nearest to x, even if the line's x is not monotone. */
export function nearestOf(line: Line, x: number): number {
  if (line.monotone) return nearest(line.xs, x);
  let best = line.xs.length ? 0 : -1;
  line.xs.forEach((value, at) => {
    if (Math.abs(value - x) < Math.abs(line.xs[best]! - x)) best = at;
  });
  return best;
}

const AXES: Record<string, string> = { since: "time since start" };
export const axisName = (axis: string) => AXES[axis] ?? axis.replace(/^metric:/, "");
export const xText = (axis: string, x: number) =>
  axis === "time" ? new Date(x * 1000).toLocaleString("en-GB") : axis === "since" ? duration(x) : number(x, 8);

/** Between two ticks of an x axis, at most. */
export const TICK_PX = 70;
const [LETTER_PX, MARGIN_PX, FEW] = [6.4, 22, 5];

/** Between two ticks of an x axis whose last one has this text: less than usual where a narrow chart would have one tick alone. */
export const tickSpace = (text: string, wide: number) => Math.min(TICK_PX, Math.max(text.length * LETTER_PX + MARGIN_PX, wide / FEW));
