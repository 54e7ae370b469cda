import { type UseQueryResult, useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

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
/** A list counts as at rest when it was not scrolled for this long. */
const REST_MS = 150;
/** Maximum number of rows that a grouped list loads. */
export const GROUPED = 1000;

/** Loads the list in windows: only the rows in view are requested. */
export function useWindows(path: ((offset: number, limit: number) => string) | null) {
  const [[first, last], setPages] = useState([0, 0]);
  const [inView, setInView] = useState<readonly [number, number]>([0, 40]);
  const rest = useRef<ReturnType<typeof setTimeout>>(undefined);
  const pages = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  const loaded = useQueries({
    queries: pages.map((page) => {
      const asked = path?.(page * PAGE, PAGE) ?? "";
      return { queryKey: ["list", asked], queryFn: () => get<Found>(asked), enabled: path !== null };
    }),
    combine: together,
  });
  useAgain(["experiments"], [["list"]], EVERY_MS);
  // Keeps the known row count while new rows load, so that the scroll position is not reset to the top.
  const current = useRef<number>(undefined);
  current.current = loaded.total ?? current.current;
  const want = useCallback((from: number, to: number) => {
    const wanted = [Math.floor(from / PAGE), Math.floor(Math.max(0, to - 1) / PAGE)] as const;
    setPages((now) => (now[0] === wanted[0] && now[1] === wanted[1] ? now : [...wanted]));
    // Data for visible rows only is requested once the list rests, not for every row that passes.
    clearTimeout(rest.current);
    rest.current = setTimeout(() => setInView((now) => (now[0] === from && now[1] === to ? now : [from, to])), REST_MS);
  }, []);
  useEffect(() => () => clearTimeout(rest.current), []);
  const { error, rows } = loaded;
  const count = current.current ?? 0;
  const source = useMemo((): Source<Row> => ({ count, at: (index) => rows.get(index), want }), [count, rows, want]);
  return { error, total: current.current, rows, inView, source };
}

/** Merges the pages; recomputed only when one of them changes. */
function together(answers: UseQueryResult<Found>[]) {
  return {
    error: answers.find((answer) => answer.error)?.error ?? null,
    total: answers.find((answer) => answer.data)?.data?.pagination.total,
    rows: new Map(answers.flatMap(({ data }) => data?.experiments.map((row, at) => [data.pagination.startIndex + at, row] as const) ?? [])),
  };
}

/** Loads all rows at once, for a grouped list. */
export function useAll(path: ((offset: number, limit: number) => string) | null) {
  return useData<Found>(path?.(0, GROUPED) ?? null, ["experiments"], true, EVERY_MS);
}
