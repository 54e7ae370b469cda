/** Trials as rows of a search: their hyperparameters and their value. */

import type { Trial } from "../../api/types";
import { flat } from "../../parts/format";
import type { Series } from "../series";

export type Ending = "" | "failed" | "stopped";

export interface Row {
  trial: Trial;
  hp: Record<string, unknown>;
  value: number;
  /** When the value was reported, in seconds since 1970; NaN if unknown. */
  at: number;
  ending: Ending;
}

/** Which number judges a trial. */
export interface Judge {
  group: string;
  name: string;
  smaller: boolean;
  /** Only values reported at about this batch count; null for all. */
  batches: number | null;
  margin: number;
}

/** The trial's own figure for the searcher's metric. */
export const bestOf = (trial: Trial, metric: string): number | null => {
  const value = trial.bestValidation?.metrics.avgMetrics[metric];
  return typeof value === "number" ? value : null;
};

/** The value of a series in one bucket: the best of its range, or the last one if a batch count is given. */
export function valueIn(series: Series, judge: Judge): number | null {
  const [last, extreme] = [series.last.at(-1) ?? null, (judge.smaller ? series.min : series.max)?.at(-1)];
  return judge.batches === null ? (extreme ?? last) : last;
}

/** Trials that have a value, best first. */
export function toRows(trials: Trial[], values: Map<number, number | null> | null, endings: Map<number, Ending>, smaller: boolean): Row[] {
  const complete = trials.flatMap((trial) => {
    const value = values?.get(trial.id);
    if (value === null || value === undefined) return [];
    const at = Date.parse(trial.bestValidation?.endTime ?? trial.endTime ?? "") / 1000;
    const ending = endings.get(trial.id) ?? (trial.state === "STATE_ERROR" ? "failed" : "");
    return [{ trial, hp: flat(trial.hparams), value, at, ending }];
  });
  return complete.sort((a, b) => (smaller ? a.value - b.value : b.value - a.value) || a.trial.id - b.trial.id);
}

/** Whether the rows look the same in every plot; other changes of their trials matter to tables only. */
export const looksSame = (some: Row[], others: Row[]) =>
  some.length === others.length &&
  some.every((row, at) => {
    const other = others[at]!;
    return (
      row.trial.id === other.trial.id &&
      row.value === other.value &&
      row.ending === other.ending &&
      Object.is(row.at, other.at) &&
      row.trial.bestCheckpoint?.uuid === other.trial.bestCheckpoint?.uuid &&
      (row.trial.hparams === other.trial.hparams || JSON.stringify(row.hp) === JSON.stringify(other.hp))
    );
  });

/** Names of hyperparameters; those that differ between trials come first. */
export function hyperparameters(rows: Row[]): { name: string; varies: boolean }[] {
  const values = new Map<string, Set<string>>();
  for (const row of rows)
    for (const [name, value] of Object.entries(row.hp)) {
      if (!values.has(name)) values.set(name, new Set());
      values.get(name)!.add(JSON.stringify(value));
    }
  const missing = (name: string) => rows.some((row) => !(name in row.hp));
  const named = [...values].map(([name, distinct]) => ({ name, varies: distinct.size > 1 || missing(name) }));
  return named.sort((a, b) => Number(b.varies) - Number(a.varies));
}

/** The trials that improved on the best value so far, in order of time. */
export function bestSoFar(rows: Row[], smaller: boolean): Row[] {
  const inTime = rows.filter((row) => Number.isFinite(row.at)).sort((a, b) => a.at - b.at || a.trial.id - b.trial.id);
  const bestRows: Row[] = [];
  for (const row of inTime) {
    const best = bestRows.at(-1);
    if (!best || (smaller ? row.value < best.value : row.value > best.value)) bestRows.push(row);
  }
  return bestRows;
}

/** Rank of each row, 0 for the best to 1 for the worst; equal values share the mean of their ranks. */
export function ranks(rows: Row[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (let start = 0; start < rows.length; ) {
    let end = start;
    while (end + 1 < rows.length && rows[end + 1]!.value === rows[start]!.value) end++;
    for (let at = start; at <= end; at++) counts.set(rows[at]!.trial.id, rows.length > 1 ? (start + end) / 2 / (rows.length - 1) : 0);
    start = end + 1;
  }
  return counts;
}

/** Number of values in each of several equal parts of their range. */
export function histogram(values: number[]): { from: number; to: number; count: number }[] {
  if (!values.length) return [];
  const [low, high] = values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
  const bins = low === high ? 1 : Math.min(40, Math.max(5, Math.ceil(Math.sqrt(values.length))));
  const width = (high - low) / bins || 1;
  const buckets = Array.from({ length: bins }, (_, at) => ({ from: low + at * width, to: low + (at + 1) * width, count: 0 }));
  for (const value of values) buckets[Math.min(bins - 1, Math.floor((value - low) / width))]!.count++;
  return buckets;
}
