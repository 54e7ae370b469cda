/** Differences between two texts, and between two sets of fields. */

import { diffLines } from "diff";

export interface Line {
  kind: "same" | "add" | "del" | "gap";
  text: string;
}
const AROUND = 3;

/** The lines of both texts, in order. */
export const lines = (before: string, after: string): Line[] =>
  diffLines(before, after).flatMap((part) =>
    part.value
      .replace(/\n$/, "")
      .split("\n")
      .map((text): Line => ({ kind: part.added ? "add" : part.removed ? "del" : "same", text })),
  );

/** Only the differences, with some lines of context. */
export function short(all: Line[]): Line[] {
  const near = all.map((_, at) => all.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((line) => line.kind !== "same"));
  return all.flatMap((line, at) => (near[at] ? [line] : near[at - 1] ? [{ kind: "gap", text: "…" } as Line] : []));
}

/** Fields whose values differ, by dotted name: before and after. */
export function fields(before: Record<string, unknown>, after: Record<string, unknown>): [string, unknown, unknown][] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => [name, before[name], after[name]]);
}
