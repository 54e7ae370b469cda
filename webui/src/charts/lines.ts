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
  const others = groups.filter((one) => !(one in ALONE));
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
export function toLines(found: Series[], trials: Known[], style: Style, looks: Looks = new Map()): Line[] {
  const known = new Map(trials.map((one) => [one.id, one]));
  const groups = ordered(found.map((one) => one.group));
  const alone = trials.length === 1;
  const lines = found
    .filter((one) => one.x.length && known.has(one.trialId))
    .map((one) => {
      const trial = known.get(one.trialId)!;
      const look = looks.get(one.trialId) ?? PLAIN;
      const slot = aloneSlot(one.group, groups);
      const start = style.sinceStart ? Date.parse(trial.startTime) / 1000 : 0;
      const xs = start ? one.x.map((x) => x - start) : one.x;
      const smoothed = style.weight > 0 ? smooth(xs, one.mean ?? one.last, style.weight) : null;
      const label = trial.label ?? `trial ${trial.id}`;
      return {
        key: `${one.trialId} ${one.group} ${one.name}`,
        trial: one.trialId,
        group: one.group,
        label: alone ? groupWord(one.group) : groups.length > 1 ? `${label} ${groupWord(one.group)}` : label,
        short: alone ? groupWord(one.group) : String(trial.id),
        colour: alone ? slotColour(slot) : look.colour,
        dash: alone ? slotDash(slot) : one.group === groups[0] ? look.dash : DOTTED,
        front: alone || look.front,
        xs,
        ys: smoothed ?? one.last,
        pale: smoothed ? one.last : null,
        low: one.min ?? null,
        high: one.max ?? null,
        batches: one.batches,
        gaps: one.gaps ?? one.last.map((value) => (value === null ? 1 : 0)),
        nonFinite: one.nonFinite,
        count: one.count,
        monotone: one.monotone !== false,
        end: trial.end ?? "",
        from: one,
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
  const values = lines.flatMap((line) => (line.pale ?? line.ys).filter((one): one is number => one !== null && (!log || one > 0)));
  if (values.length < 20) return null;
  const sorted = Float64Array.from(values).sort();
  const [low, high] = [sorted[Math.floor(sorted.length / 100)]!, sorted[Math.ceil((sorted.length * 99) / 100) - 1]!];
  return low < high ? [low, high] : null;
}

/** What the axes must cover; with `log`, only positive y. Null if there is nothing to show. */
export function extent(lines: Line[], log: boolean, band: boolean): Extent | null {
  const [x, y] = [new Span(), new Span()];
  for (const line of lines) {
    for (const one of line.xs) x.add(one);
    const columns = [line.ys, line.pale, ...(band ? [line.low, line.high] : [])];
    for (const column of columns) for (const one of column ?? []) if (one !== null && (!log || one > 0)) y.add(one);
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
  line.xs.forEach((one, at) => {
    if (Math.abs(one - x) < Math.abs(line.xs[best]! - x)) best = at;
  });
  return best;
}

const AXES: Record<string, string> = { since: "time since start" };
export const axisName = (axis: string) => AXES[axis] ?? axis.replace(/^metric:/, "");
export const xText = (axis: string, x: number) =>
  axis === "time" ? new Date(x * 1000).toLocaleString("en-GB") : axis === "since" ? duration(x) : number(x, 8);
