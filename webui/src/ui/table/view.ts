import { useMemo, useState } from "react";

import type { Column, ColumnView } from "./types";

interface Kept {
  shown: string[] | null;
  widths: Record<string, number>;
}

function read(store: string): Kept {
  try {
    return { shown: null, widths: {}, ...JSON.parse(localStorage.getItem(`table ${store}`) ?? "{}") };
  } catch {
    return { shown: null, widths: {} };
  }
}

/** Stored in this browser under a name. */
export function useKeptView(store = ""): ColumnView {
  const [kept, setKept] = useState(() => read(store));
  return useMemo(() => {
    const put = (next: Kept) => {
      if (store) localStorage.setItem(`table ${store}`, JSON.stringify(next));
      setKept(next);
    };
    return {
      ...kept,
      setShown: (shown) => put({ ...kept, shown }),
      setWidth: (id, width) => put({ ...kept, widths: { ...kept.widths, [id]: width } }),
    };
  }, [kept, store]);
}

/** The columns shown, in order. */
export function chosen<T>(columns: Column<T>[], shown: string[] | null, narrow: boolean): Column<T>[] {
  const found = shown ? shown.flatMap((id) => columns.find((one) => one.id === id) ?? []) : columns.filter((one) => !one.off);
  const small = narrow ? found.filter((one) => one.name || (one.small && !one.under)) : found;
  return small.length ? small : found;
}

/** The columns shown below the name on a telephone. */
export const below = <T>(columns: Column<T>[], shown: string[] | null): Column<T>[] =>
  columns.filter((one) => one.under && (shown ? shown.includes(one.id) : !one.off));
