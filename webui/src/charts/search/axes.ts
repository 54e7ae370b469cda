/** Axes of hyperparameters and metrics: map values to positions from 0 to 1. */

import { tickText } from "../export";
import type { Row } from "./rows";
import type { Ranged } from "./scales";

export interface Axis {
  name: string;
  /** The kinds of a categorical axis; null for numbers. */
  kinds: string[] | null;
  log: boolean;
  /** Name of the scale, from the configuration. */
  scale?: string;
  low: number;
  high: number;
  read: (row: Row) => unknown;
}
export type Scaling = "" | "linear" | "log";
const WIDE = 50;

/**
 * With an empty `scaling`, the configuration decides (`ranged`), also about the range of the axis. If it says nothing,
 * the axis is logarithmic when positive values span a factor of more than 50.
 */
export function axisOf(name: string, rows: Row[], read: (row: Row) => unknown, scaling: Scaling = "", ranged?: Ranged): Axis {
  const values = rows.map(read).filter((value) => value !== undefined && value !== null);
  const numbers = values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  if (values.length && numbers.length < values.length) {
    const kinds = [...new Set(values.map((value) => JSON.stringify(value)))].sort();
    return { name, kinds, log: false, scale: "choice", low: 0, high: kinds.length - 1, read };
  }
  const low = numbers.reduce((least, number) => Math.min(least, number), Infinity);
  const high = numbers.reduce((most, number) => Math.max(most, number), -Infinity);
  if (!numbers.length) return { name, kinds: null, log: false, low: 0, high: 1, read };
  if (ranged?.kind === "choice" && scaling === "") return choices(name, values, read);
  const ends = ranged?.span ? [Math.min(low, ranged.span[0]), Math.max(high, ranged.span[1])] : [low, high];
  const asked = scaling || (ranged ? (ranged.kind === "log" ? "log" : "linear") : high / low > WIDE ? "log" : "linear");
  const log = ends[0]! > 0 && asked === "log";
  const scale = ranged?.kind === "int" && !log ? "int" : log ? "log" : "linear";
  return { name, kinds: null, log, scale, low: ends[0]!, high: ends[1]!, read };
}

/** Numbers that the configuration lists one by one, in its order. */
function choices(name: string, values: unknown[], read: (row: Row) => unknown): Axis {
  const kinds = [...new Set(values as number[])].sort((a, b) => a - b).map((value) => JSON.stringify(value));
  return { name, kinds, log: false, scale: "choice", low: 0, high: kinds.length - 1, read };
}

/** A value as a number on the axis: the number itself, or the index of its kind. */
export function onAxis(axis: Axis, value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (axis.kinds) return axis.kinds.indexOf(JSON.stringify(value));
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

const map = (axis: Axis, value: number) => (axis.log ? Math.log(value) : value);

/** Position on the axis, 0 to 1; 0.5 if both ends are equal. */
export function share(axis: Axis, value: number): number {
  const [low, high] = [map(axis, axis.low), map(axis, axis.high)];
  return high > low ? (map(axis, value) - low) / (high - low) : 0.5;
}

export function placeOf(axis: Axis, row: Row): number | null {
  const value = onAxis(axis, axis.read(row));
  return value === null ? null : share(axis, value);
}

/** The value at a position; the inverse of `share`. */
export function valueAt(axis: Axis, place: number): number {
  const [low, high] = [map(axis, axis.low), map(axis, axis.high)];
  const value = low + place * (high - low);
  return axis.log ? Math.exp(value) : value;
}

const MOST = 5;
const NEAR = 0.06;
/** Ticks at powers of ten, and at both ends if there is room. */
function powers(axis: Axis): [number, string][] {
  const [from, to] = [Math.ceil(Math.log10(axis.low) - 1e-9), Math.floor(Math.log10(axis.high) + 1e-9)];
  const every = Math.max(1, Math.ceil((to - from + 1) / MOST));
  const ticks: [number, string][] = [];
  for (let power = from; power <= to; power += every) ticks.push([share(axis, 10 ** power), `1e${power}`]);
  for (const [place, value] of [
    [0, axis.low],
    [1, axis.high],
  ] as const)
    if (ticks.every(([at]) => Math.abs(at - place) > NEAR)) ticks.push([place, short(value)]);
  return ticks;
}

const short = (value: number) =>
  value !== 0 && Math.abs(value) < 0.01 ? Number(value.toPrecision(2)).toExponential() : tickText(Number(value.toPrecision(3)));

/** Ticks at round numbers, and at both ends if there is room; whole numbers only, if all values are whole. */
function evenly(axis: Axis): [number, string][] {
  const span = axis.high - axis.low;
  if (axis.scale === "int" && span < 1e6) {
    const parts = wholeParts(span);
    return Array.from({ length: parts + 1 }, (_, at) => [at / parts, short(axis.low + (span * at) / parts)]);
  }
  const step = roundStep(span / 5);
  const from = Math.ceil(axis.low / step - 1e-9);
  const round = Array.from({ length: Math.floor(axis.high / step + 1e-9) - from + 1 }, (_, at) => (from + at) * step);
  const ticks = round.map((value): [number, string] => [share(axis, value), short(value)]);
  for (const [place, value] of [
    [0, axis.low],
    [1, axis.high],
  ] as const)
    if (ticks.every(([at]) => Math.abs(at - place) > ROOM)) ticks.push([place, short(value)]);
  return ticks.sort(([a], [b]) => a - b);
}

const ROOM = 0.11;
/** The nearest round step: 1, 2, 2.5 or 5 times a power of ten. */
function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= wanted * 0.999) ?? 10);
}

const wholeParts = (span: number) => [4, 5, 3, 2, 6].find((parts) => Number.isInteger(span / parts)) ?? 1;

const KINDS = 12;
export function ticksOf(axis: Axis): [number, string][] {
  if (!axis.kinds) return axis.low === axis.high ? [[0.5, tickText(axis.low)]] : axis.log ? powers(axis) : evenly(axis);
  const every = Math.ceil(axis.kinds.length / KINDS);
  return axis.kinds.flatMap((kind, at): [number, string][] => (at % every ? [] : [[share(axis, at), kind.replace(/^"|"$/g, "")]]));
}

const BETWEEN_PX = 6;
/** Labels beside each other, from left to right, without those that would run into the one before. */
export function apart<Label extends { middle: number; half: number }>(labels: Label[]): Label[] {
  let end = -Infinity;
  return labels
    .toSorted((a, b) => a.middle - b.middle)
    .filter(({ middle, half }) => {
      const fits = middle - half >= end + BETWEEN_PX;
      if (fits) end = middle + half;
      return fits;
    });
}

/** A range or kinds chosen on an axis, in the axis's values. */
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
const escaped = (name: string) => encodeURIComponent(name).replace(SEPARATORS, (character) => `%${character.charCodeAt(0).toString(16)}`);

export const writeBrushes = (brushes: Brush[]) =>
  brushes.map(({ name, from, to }) => [escaped(name), ...[from, to].map((end) => Number(end.toPrecision(6)))].join("~")).join("!");

export const readBrushes = (text: string | null): Brush[] =>
  (text ?? "").split("!").flatMap((entry) => {
    const [name, from, to] = entry.split("~");
    const ends = [Number(from), Number(to)];
    return name && from && to && ends.every(Number.isFinite) ? [{ name: decodeURIComponent(name), from: ends[0]!, to: ends[1]! }] : [];
  });
