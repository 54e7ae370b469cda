/** The address holds the view, under short keys, so that a copied link shows the same. */

import { useCallback } from "react";
import { useSearchParams } from "react-router";

/** The parameters of the address, and a function that changes some of them; an empty value removes a parameter. */
export function useLink() {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (changes: Record<string, string>) =>
      setParams(
        (before) => {
          for (const [name, value] of Object.entries(changes)) {
            if (value) before.set(name, value);
            else before.delete(name);
          }
          return before;
        },
        { replace: true },
      ),
    [setParams],
  );
  return { params, set };
}

/** Parses a range from the address. */
export function readRange(text: string | null): [number, number] | null {
  const ends = (text ?? "").split("..").map(Number);
  return text && ends.length === 2 && ends.every(Number.isFinite) && ends[0]! < ends[1]! ? [ends[0]!, ends[1]!] : null;
}

export const writeRange = (range: [number, number] | null) => (range ? range.map((end) => Number(end.toPrecision(12))).join("..") : "");

/** Parses names from the address. */
export const readNames = (text: string | null | undefined) => (text ?? "").split("~").filter(Boolean).map(decodeURIComponent);
export const writeNames = (names: Iterable<string>) => [...names].map((name) => encodeURIComponent(name).replaceAll("~", "%7e")).join("~");

export interface View {
  /** batches, epoch, time, since (the trial's start) or metric:NAME. */
  x: string;
  log: boolean;
  smooth: number;
  band: boolean;
  zoom: [number, number] | null;
  /** Show only metrics whose name contains this. */
  find: string;
  /** What colours stand for; see `By`. */
  by: string;
  /** Draws the trials of one kind as their mean and a band; see `By`. */
  together: string;
  /** Charts per row; 0 means as many as fit. */
  columns: number;
}

/** The axis of metrics known by time only, whatever axis the others use. */
export const timedAxis = (x: string) => (x === "time" ? "time" : "since");

/** How curves are drawn. */
export function useView(): View & { set: (changes: Record<string, string>) => void } {
  const { params, set } = useLink();
  const smooth = Number(params.get("s") ?? 0);
  const columns = Number(params.get("cols") ?? 0);
  return {
    x: params.get("x") ?? "batches",
    log: params.get("y") === "log",
    smooth: smooth >= 0 && smooth < 1 ? smooth : 0,
    band: params.get("b") !== "0",
    zoom: readRange(params.get("z")),
    find: params.get("q") ?? "",
    by: params.get("cb") ?? "",
    together: params.get("gb") ?? "",
    columns: columns >= 1 && columns <= 3 ? columns : 0,
    set,
  };
}
