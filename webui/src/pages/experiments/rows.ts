import { useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";

import { get } from "../../api/client";
import { useAgain, useData } from "../../api/data";
import type { Pagination } from "../../api/types";
import type { Row } from "../../lists/columns";
import type { Source } from "../../ui/table";

export interface Found {
  experiments: Row[];
  pagination: Pagination;
}

const PAGE = 100;
const EVERY_MS = 1000;
/** Groups are made of so many rows at most. */
export const GROUPED = 1000;

/** Rows by windows of the list: only those in view are asked for. */
export function useWindows(path: ((offset: number, limit: number) => string) | null) {
  const [[first, last], setRange] = useState([0, 40]);
  const pages = Array.from(
    { length: Math.floor(Math.max(0, last - 1) / PAGE) - Math.floor(first / PAGE) + 1 },
    (_, at) => Math.floor(first / PAGE) + at,
  );
  const found = useQueries({
    queries: pages.map((page) => {
      const asked = path?.(page * PAGE, PAGE) ?? "";
      return { queryKey: ["list", asked], queryFn: () => get<Found>(asked), enabled: path !== null };
    }),
  });
  useAgain(["experiments"], [["list"]], EVERY_MS);
  const told = found.find((one) => one.data)?.data?.pagination.total;
  // Who scrolls far is not thrown back to the top while the rows there are on their way.
  const known = useRef<number>(undefined);
  known.current = told ?? known.current;
  const rows = new Map(
    found.flatMap(({ data }) => data?.experiments.map((row, at) => [data.pagination.startIndex + at, row] as const) ?? []),
  );
  const want = useCallback((from: number, to: number) => setRange(([a, b]) => (a === from && b === to ? [a, b] : [from, to])), []);
  return {
    error: found.find((one) => one.error)?.error ?? null,
    total: known.current,
    rows,
    inView: useMemo(() => [first, last] as const, [first, last]),
    source: { count: known.current ?? 0, at: (index: number) => rows.get(index), want } satisfies Source<Row>,
  };
}

/** All of them at once, for a list in groups. */
export function useAll(path: ((offset: number, limit: number) => string) | null) {
  return useData<Found>(path?.(0, GROUPED) ?? null, ["experiments"], true, EVERY_MS);
}
