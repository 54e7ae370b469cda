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
  const [stored, setKept] = useState(() => read(store));
  return useMemo(() => {
    const put = (next: Kept) => {
      if (store) localStorage.setItem(`table ${store}`, JSON.stringify(next));
      setKept(next);
    };
    return {
      ...stored,
      setShown: (shown) => put({ ...stored, shown }),
      setWidth: (id, width) => put({ ...stored, widths: { ...stored.widths, [id]: width } }),
    };
  }, [stored, store]);
}

/** The columns shown, in order. */
export function chosen<T>(columns: Column<T>[], shown: string[] | null, narrow: boolean): Column<T>[] {
  const ordered = shown ? shown.flatMap((id) => columns.find((column) => column.id === id) ?? []) : columns.filter((column) => !column.off);
  const small = narrow ? ordered.filter((column) => column.name || (column.small && !column.under)) : ordered;
  return small.length ? small : ordered;
}

/** The columns shown below the name on a telephone. */
export const below = <T>(columns: Column<T>[], shown: string[] | null): Column<T>[] =>
  columns.filter((column) => column.under && (shown ? shown.includes(column.id) : !column.off));
