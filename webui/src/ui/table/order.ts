import type { Column, Sort, Value } from "./types";

const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** Unknown values come last, in either direction. */
function compare(a: Value, b: Value, descending: boolean): number {
  const [none, other] = [a === null || a === undefined || a === "", b === null || b === undefined || b === ""];
  if (none || other) return Number(none) - Number(other);
  const order = typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));
  return descending ? -order : order;
}

export function ordered<T>(rows: T[], columns: Column<T>[], sorts: readonly Sort[]): T[] {
  const by = sorts.flatMap(([id, descending]) => {
    const value = columns.find((sorted) => sorted.id === id)?.value;
    return value ? [{ value, descending }] : [];
  });
  if (!by.length) return rows;
  return rows.toSorted((a, b) => {
    for (const { value, descending } of by) {
      const order = compare(value(a), value(b), descending);
      if (order) return order;
    }
    return 0;
  });
}

export type Item<T> = { kind: "row"; row: T; index: number } | { kind: "group"; key: string; rows: T[]; folded: boolean };

/** Rows below the heads of their groups; groups in the order of their first row. */
export function grouped<T>(rows: T[], of: ((row: T) => string) | undefined, folded: ReadonlySet<string>): Item<T>[] {
  if (!of) return rows.map((row, index) => ({ kind: "row", row, index }));
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const key = of(row);
    const there = groups.get(key);
    if (there) there.push(row);
    else groups.set(key, [row]);
  }
  let index = 0;
  return [...groups].flatMap(([key, members]): Item<T>[] => {
    const isFolded = folded.has(key);
    const shown: Item<T>[] = isFolded ? [] : members.map((row) => ({ kind: "row", row, index: index++ }));
    return [{ kind: "group", key, rows: members, folded: isFolded }, ...shown];
  });
}

/** The new sort keys after a click on a heading; with shift, it is added after the existing ones. */
export function sortedBy(sorts: readonly Sort[], id: string, more: boolean): Sort[] {
  const now = sorts.find(([column]) => column === id);
  const next: Sort = [id, now ? !now[1] : false];
  return more ? [...sorts.filter(([column]) => column !== id), next] : [next];
}

/** The ids in their new order after one has taken the place `to`; unchanged if it is not among them. */
export function movedTo(ids: readonly string[], id: string, to: number): string[] {
  const next = ids.filter((other) => other !== id);
  if (next.length < ids.length) next.splice(Math.max(0, to), 0, id);
  return next;
}
