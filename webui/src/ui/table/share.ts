/**
 * Limits how many rows are rendered per step of scrolling: during fast scrolling some rows are shown as bars, but it
 * never stutters.
 */

import { useEffect, useLayoutEffect, useRef, useState } from "react";

const MOST = 5;
const STEP_MS = 40;

/** The rows to render now: those already rendered, plus a few more, visible ones first. */
export function shareOf(before: ReadonlySet<number>, [from, to]: readonly [number, number], seen: readonly [number, number]): Set<number> {
  const all = Array.from({ length: to - from }, (_, at) => from + at);
  const inSight = (index: number) => index >= seen[0] && index <= seen[1];
  const news = all.filter((index) => !before.has(index));
  const next = [...news.filter(inSight), ...news.filter((index) => !inSight(index))].slice(0, MOST);
  return new Set([...all.filter((index) => before.has(index)), ...next]);
}

/** A row to draw (`rows` is 0), or the number of rows from there on that are not drawn. */
export interface Stretch {
  from: number;
  rows: number;
}

/** Rows that are drawn one by one; those between them together. */
export function stretches(from: number, to: number, isDrawn: (index: number) => boolean): Stretch[] {
  const stretches: Stretch[] = [];
  for (let index = from; index < to; index += 1) {
    const last = stretches.at(-1);
    if (isDrawn(index)) stretches.push({ from: index, rows: 0 });
    else if (last && last.rows > 0) last.rows += 1;
    else stretches.push({ from: index, rows: 1 });
  }
  return stretches;
}

/** Null: all of them. */
export function useShare(from: number, to: number, seen: readonly [number, number], scrolled: boolean): ReadonlySet<number> | null {
  const drawn = useRef<ReadonlySet<number>>(new Set());
  const [, again] = useState(0);
  const share = scrolled ? shareOf(drawn.current, [from, to], seen) : null;
  useLayoutEffect(() => {
    drawn.current = share ?? new Set(Array.from({ length: to - from }, (_, at) => from + at));
  });
  const left = share !== null && share.size < to - from;
  useEffect(() => {
    // During scrolling, its next step renders anyway.
    const timer = left ? setTimeout(() => again((many) => many + 1), STEP_MS) : undefined;
    return () => clearTimeout(timer);
  });
  return share;
}
