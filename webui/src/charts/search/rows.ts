/** Trials as rows of a search: their hyperparameters, and what they came to. */

import type { Trial } from "../../api/types";
import { flat } from "../../parts/format";
import type { Series } from "../series";

export type Ending = "" | "failed" | "stopped";

export interface Row {
  trial: Trial;
  hp: Record<string, unknown>;
  value: number;
  /** When it was reported, in seconds since 1970; NaN where that is not known. */
  at: number;
  ending: Ending;
}

/** Which number judges a trial. */
export interface Judge {
  group: string;
  name: string;
  smaller: boolean;
  /** Only what was reported at about these batches. */
  batches: number | null;
  margin: number;
}

/** Values by trial, as the trials tell of the searcher's metric themselves. */
export const bestOf = (trial: Trial, metric: string): number | null => {
  const value = trial.bestValidation?.metrics.avgMetrics[metric];
  return typeof value === "number" ? value : null;
};

/** A series in one bucket gives the best of its range, or the last where batches are asked for. */
export function valueIn(one: Series, judge: Judge): number | null {
  const [last, extreme] = [one.last.at(-1) ?? null, (judge.smaller ? one.min : one.max)?.at(-1)];
  return judge.batches === null ? (extreme ?? last) : last;
}

/** Trials that have a value, best first. */
export function toRows(trials: Trial[], values: Map<number, number | null>, endings: Map<number, Ending>, smaller: boolean): Row[] {
  const found = trials.flatMap((trial) => {
    const value = values.get(trial.id);
    if (value === null || value === undefined) return [];
    const at = Date.parse(trial.bestValidation?.endTime ?? trial.endTime ?? "") / 1000;
    const ending = endings.get(trial.id) ?? (trial.state === "STATE_ERROR" ? "failed" : "");
    return [{ trial, hp: flat(trial.hparams), value, at, ending }];
  });
  return found.sort((a, b) => (smaller ? a.value - b.value : b.value - a.value) || a.trial.id - b.trial.id);
}

/** Whether they look the same in every plot; what else of their trials has changed counts for tables only. */
export const looksSame = (some: Row[], others: Row[]) =>
  some.length === others.length &&
  some.every((one, at) => {
    const other = others[at]!;
    return (
      one.trial.id === other.trial.id &&
      one.value === other.value &&
      one.ending === other.ending &&
      Object.is(one.at, other.at) &&
      one.trial.bestCheckpoint?.uuid === other.trial.bestCheckpoint?.uuid &&
      (one.trial.hparams === other.trial.hparams || JSON.stringify(one.hp) === JSON.stringify(other.hp))
    );
  });

/** Names of hyperparameters that differ between trials first, then those that are the same in all. */
export function hyperparameters(rows: Row[]): { name: string; varies: boolean }[] {
  const values = new Map<string, Set<string>>();
  for (const row of rows)
    for (const [name, value] of Object.entries(row.hp)) {
      if (!values.has(name)) values.set(name, new Set());
      values.get(name)!.add(JSON.stringify(value));
    }
  const missing = (name: string) => rows.some((row) => !(name in row.hp));
  const named = [...values].map(([name, found]) => ({ name, varies: found.size > 1 || missing(name) }));
  return named.sort((a, b) => Number(b.varies) - Number(a.varies));
}

/** The best value so far, in order of time: where it was reached, and by which trial. */
export function bestSoFar(rows: Row[], smaller: boolean): Row[] {
  const inTime = rows.filter((row) => Number.isFinite(row.at)).sort((a, b) => a.at - b.at || a.trial.id - b.trial.id);
  const found: Row[] = [];
  for (const row of inTime) {
    const best = found.at(-1);
    if (!best || (smaller ? row.value < best.value : row.value > best.value)) found.push(row);
  }
  return found;
}

/** Place of each row among all, 0 the best to 1 the worst; equal values share the mean of their places. */
export function ranks(rows: Row[]): Map<number, number> {
  const found = new Map<number, number>();
  for (let start = 0; start < rows.length; ) {
    let end = start;
    while (end + 1 < rows.length && rows[end + 1]!.value === rows[start]!.value) end++;
    for (let at = start; at <= end; at++) found.set(rows[at]!.trial.id, rows.length > 1 ? (start + end) / 2 / (rows.length - 1) : 0);
    start = end + 1;
  }
  return found;
}

/** How many values fall into each of equal parts of their span. */
export function histogram(values: number[]): { from: number; to: number; count: number }[] {
  if (!values.length) return [];
  const [low, high] = values.reduce(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [Infinity, -Infinity]);
  const bins = low === high ? 1 : Math.min(40, Math.max(5, Math.ceil(Math.sqrt(values.length))));
  const width = (high - low) / bins || 1;
  const found = Array.from({ length: bins }, (_, at) => ({ from: low + at * width, to: low + (at + 1) * width, count: 0 }));
  for (const value of values) found[Math.min(bins - 1, Math.floor((value - low) / width))]!.count++;
  return found;
}
