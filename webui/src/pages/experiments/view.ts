/** The part of the address that describes the list; names are short, since people share links. */

import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";

import { query } from "../../api/client";
import { isFixed } from "../../lists/columns";
import { filterOf, parse, QueryError } from "../../lists/query";
import type { Sort } from "../../ui/table";
import { GROUPS } from "./groups";
import { readHeat } from "./heat";

export function useListView() {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (wanted: Record<string, string>) =>
      setParams(
        (before) => {
          for (const [name, value] of Object.entries(wanted))
            if (value) before.set(name, value);
            else before.delete(name);
          return before;
        },
        { replace: true },
      ),
    [setParams],
  );
  return useMemo(() => ({ set, params, ...read(params) }), [set, params]);
}

/** Memoized by the address, because lists redraw for a new object. */
const read = (params: URLSearchParams) => ({
  text: params.get("q") ?? "",
  shown: params.get("c")?.split(",").filter(Boolean) ?? null,
  sorts: (params.get("s") ?? "id:desc").split(",").map((sort): Sort => {
    const at = sort.lastIndexOf(":");
    return [sort.slice(0, at), sort.slice(at + 1) === "desc"];
  }),
  widths: Object.fromEntries(
    (params.get("w") ?? "")
      .split(",")
      .filter(Boolean)
      .map((entry) => [entry.slice(0, entry.lastIndexOf(":")), Number(entry.slice(entry.lastIndexOf(":") + 1))]),
  ) as Record<string, number>,
  // An unknown group counts as none, so that the page does not claim to group by it.
  group: Object.hasOwn(GROUPS, params.get("g") ?? "") ? params.get("g")! : "",
  heat: readHeat(params.get("heat")),
  archived: params.has("a"),
});

export type ListView = ReturnType<typeof useListView>;

export const sortText = (sorts: readonly Sort[]) => sorts.map(([id, descending]) => `${id}:${descending ? "desc" : "asc"}`).join(",");

/** The request to the server; null while the query is invalid. */
export function askedFor(
  view: Pick<ListView, "text" | "archived" | "sorts">,
  project: number,
  shown: string[],
): ((offset: number, limit: number) => string) | null {
  try {
    const filter = filterOf(parse(view.text), view.archived);
    const order = view.sorts.map(([id, descending]) => `${id}=${descending ? "desc" : "asc"}`).join(",");
    return (offset, limit) =>
      `experiments-search${query({
        lean: true,
        projectId: project || undefined,
        filter,
        sort: order,
        columns: shown.filter((id) => !isFixed(id)),
        offset,
        limit,
      })}`;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}
