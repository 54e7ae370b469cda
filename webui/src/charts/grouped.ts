/** Merges the lines of many trials into one line per group: their mean, with a band from minimum to maximum. */

import type { Line } from "./lines";
import { nearest } from "./lines";

const POINTS = 400;

/** `groupOf` returns the group of a trial and how that group looks. */
export function grouped(lines: Line[], groupOf: (trial: number) => { name: string; colour: string; dash: number[] } | null): Line[] {
  const groups = new Map<string, { look: { name: string; colour: string; dash: number[] }; lines: Line[] }>();
  for (const line of lines) {
    const look = groupOf(line.trial);
    if (!look) continue;
    const key = `${look.name} ${line.group}`;
    const group = groups.get(key) ?? { look, lines: [] };
    group.lines.push(line);
    groups.set(key, group);
  }
  const several = new Set(lines.map((line) => line.group)).size > 1;
  return [...groups].map(([key, { look, lines }]) => {
    const [first] = lines as [Line];
    const label = `${look.name} (${lines.length})${several ? ` ${first.group}` : ""}`;
    return { ...together(lines), key, label, short: look.name, colour: look.colour, dash: look.dash, front: true };
  });
}

function together(lines: Line[]): Line {
  const [first] = lines as [Line];
  const xs = placesOf(lines);
  const ys: (number | null)[] = [];
  const [low, high]: (number | null)[][] = [[], []];
  for (const x of xs) {
    const values = lines.map((line) => at(line, x)).filter((value) => value !== null);
    ys.push(values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
    low!.push(values.length ? Math.min(...values) : null);
    high!.push(values.length ? Math.max(...values) : null);
  }
  const none = xs.map(() => 0);
  return { ...first, xs, ys, pale: null, low: low!, high: high!, batches: xs, gaps: none, nonFinite: 0, monotone: true, end: "" };
}

/** All x at which any of the lines has a point, thinned evenly. */
function placesOf(lines: Line[]): number[] {
  const all = [...new Set(lines.flatMap((line) => line.xs))].sort((a, b) => a - b);
  const every = Math.ceil(all.length / POINTS);
  return all.filter((_, at) => at % every === 0 || at === all.length - 1);
}

/** The value of a line, interpolated between its points; null before the first and after the last. */
function at(line: Line, x: number): number | null {
  const { xs, ys } = line;
  if (!xs.length || x < xs[0]! || x > xs[xs.length - 1]!) return null;
  const place = nearest(xs, x);
  const other = xs[place]! < x ? place + 1 : xs[place]! > x ? place - 1 : place;
  const [from, to] = [ys[place] ?? null, ys[other] ?? null];
  if (from === null || to === null || xs[other] === xs[place]) return from;
  return from + ((to - from) * (x - xs[place]!)) / (xs[other]! - xs[place]!);
}
