/** Axes of hyperparameters and metrics: where a value lies, from 0 to 1. */

import { number } from "../../parts/format";
import type { Row } from "./rows";

export interface Axis {
  name: string;
  /** Numbers, or what a value is one of. */
  kinds: string[] | null;
  log: boolean;
  low: number;
  high: number;
  read: (row: Row) => unknown;
}
export type Scaling = "" | "linear" | "log";
const WIDE = 50;

/** `scaling` empty: logarithmic where positive values span more than 50 times. */
export function axisOf(name: string, rows: Row[], read: (row: Row) => unknown, scaling: Scaling = ""): Axis {
  const values = rows.map(read).filter((value) => value !== undefined && value !== null);
  const numbers = values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  if (values.length && numbers.length < values.length) {
    const kinds = [...new Set(values.map((value) => JSON.stringify(value)))].sort();
    return { name, kinds, log: false, low: 0, high: kinds.length - 1, read };
  }
  const low = numbers.reduce((least, one) => Math.min(least, one), Infinity);
  const high = numbers.reduce((most, one) => Math.max(most, one), -Infinity);
  if (!numbers.length) return { name, kinds: null, log: false, low: 0, high: 1, read };
  const log = low > 0 && (scaling === "log" || (scaling === "" && high / low > WIDE));
  return { name, kinds: null, log, low, high, read };
}

/** A value as a number on the axis: itself, or its place among the kinds. */
export function onAxis(axis: Axis, value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (axis.kinds) return axis.kinds.indexOf(JSON.stringify(value));
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

const map = (axis: Axis, value: number) => (axis.log ? Math.log(value) : value);

/** 0 to 1 from one end of the axis to the other; 0.5 where both are the same. */
export function share(axis: Axis, value: number): number {
  const [low, high] = [map(axis, axis.low), map(axis, axis.high)];
  return high > low ? (map(axis, value) - low) / (high - low) : 0.5;
}

export function placeOf(axis: Axis, row: Row): number | null {
  const value = onAxis(axis, axis.read(row));
  return value === null ? null : share(axis, value);
}

/** The value at a place: what `share` undoes. */
export function valueAt(axis: Axis, place: number): number {
  const [low, high] = [map(axis, axis.low), map(axis, axis.high)];
  const found = low + place * (high - low);
  return axis.log ? Math.exp(found) : found;
}

const KINDS = 12;
export function ticksOf(axis: Axis): [number, string][] {
  if (!axis.kinds)
    return axis.low === axis.high ? [[0.5, number(axis.low, 3)]] : [0, 0.5, 1].map((at) => [at, number(valueAt(axis, at), 3)]);
  const every = Math.ceil(axis.kinds.length / KINDS);
  return axis.kinds.flatMap((kind, at): [number, string][] => (at % every ? [] : [[share(axis, at), kind.replace(/^"|"$/g, "")]]));
}

/** What is chosen on an axis, in values of that axis. */
export interface Brush {
  name: string;
  from: number;
  to: number;
}

export const fits = (row: Row, brushes: Brush[], axes: Map<string, Axis>) =>
  brushes.every((brush) => {
    const axis = axes.get(brush.name);
    const value = axis && onAxis(axis, axis.read(row));
    return value === undefined || (value !== null && value >= brush.from && value <= brush.to);
  });

const SEPARATORS = /[~!]/g;
const escaped = (name: string) => encodeURIComponent(name).replace(SEPARATORS, (one) => `%${one.charCodeAt(0).toString(16)}`);

export const writeBrushes = (brushes: Brush[]) =>
  brushes.map(({ name, from, to }) => [escaped(name), ...[from, to].map((end) => Number(end.toPrecision(6)))].join("~")).join("!");

export const readBrushes = (text: string | null): Brush[] =>
  (text ?? "").split("!").flatMap((one) => {
    const [name, from, to] = one.split("~");
    const ends = [Number(from), Number(to)];
    return name && from && to && ends.every(Number.isFinite) ? [{ name: decodeURIComponent(name), from: ends[0]!, to: ends[1]! }] : [];
  });
