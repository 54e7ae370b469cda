/** The address holds the view: short keys, so that a copied link shows the same. */

import { useCallback } from "react";
import { useSearchParams } from "react-router";

/** Parameters of the address, and how to change some of them; an empty value removes one. */
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

/** A range as it stands in the address. */
export function readRange(text: string | null): [number, number] | null {
  const ends = (text ?? "").split("..").map(Number);
  return text && ends.length === 2 && ends.every(Number.isFinite) && ends[0]! < ends[1]! ? [ends[0]!, ends[1]!] : null;
}

export const writeRange = (range: [number, number] | null) => (range ? range.map((end) => Number(end.toPrecision(12))).join("..") : "");

/** Names as they stand in the address. */
export const readNames = (text: string | null | undefined) => (text ?? "").split("~").filter(Boolean).map(decodeURIComponent);
export const writeNames = (names: Iterable<string>) => [...names].map((name) => encodeURIComponent(name).replaceAll("~", "%7e")).join("~");

export interface View {
  /** batches, epoch, time, since (the trial's start) or metric:NAME */
  x: string;
  log: boolean;
  smooth: number;
  band: boolean;
  zoom: [number, number] | null;
  /** Part of the names that are shown. */
  find: string;
  /** What colours stand for; see `By`. */
  by: string;
  /** Trials of one kind become their mean and the band of their extremes; see `By`. */
  together: string;
  /** Charts in a row; 0 for as many as there is room for. */
  columns: number;
}

/** The axis of what is known by time alone, whatever is chosen for all others. */
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
