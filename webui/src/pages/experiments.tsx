import { useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link, useNavigate, useParams, useSearchParams } from "react-router";

import { get, query } from "../api/client";
import { useAgain, useData } from "../api/data";
import type { Pagination } from "../api/types";
import { Bulk } from "../lists/bulk";
import { column, DEFAULT, isFixed, offered, plain, type Row } from "../lists/columns";
import { Filters } from "../lists/filters";
import { Grid, HEIGHTS, type Sort } from "../lists/grid";
import { Picker } from "../lists/picker";
import { filterOf, parse, QueryError } from "../lists/query";
import { ActionMenu } from "../parts/actions";
import { Empty, Failure } from "../parts/basics";
import { csv, save } from "../parts/file";
import { useListKeys } from "../parts/keys";
import { seeProject } from "../parts/seen";

const PAGE = 100;
const FILE_PAGE = 2000;
const MOST_CHOSEN = 1000;
const EVERY_MS = 1000;

interface Found {
  experiments: Row[];
  pagination: Pagination;
}

/** What the address says of the view; short names, since people send it around. */
function useView() {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (name: string, value: string) =>
      setParams(
        (before) => {
          if (value) before.set(name, value);
          else before.delete(name);
          return before;
        },
        { replace: true },
      ),
    [setParams],
  );
  const text = params.get("q") ?? "";
  const shown = (params.get("c") ?? DEFAULT.join(",")).split(",").filter(Boolean);
  const sorts = (params.get("s") ?? "id:desc").split(",").map((one): Sort => {
    const at = one.lastIndexOf(":");
    return [one.slice(0, at), one.slice(at + 1) === "desc"];
  });
  const widths: Record<string, number> = Object.fromEntries(
    (params.get("w") ?? "")
      .split(",")
      .filter(Boolean)
      .map((one) => [one.slice(0, one.lastIndexOf(":")), Number(one.slice(one.lastIndexOf(":") + 1))]),
  );
  return {
    set,
    text,
    shown,
    sorts,
    widths,
    pinned: Number(params.get("p") ?? 2),
    height: params.get("h") ?? localStorage.getItem("density") ?? "roomy",
    archived: params.has("a"),
  };
}

export function Experiments() {
  const view = useView();
  const project = Number(useParams().project ?? 0);
  const named = useData<{ project: { name: string; workspaceName: string; workspaceId: number } }>(project ? `projects/${project}` : null, [
    "workspaces",
  ]);
  const projectName = named.data?.project.name;
  useEffect(() => {
    if (project && projectName) seeProject(project, projectName);
  }, [project, projectName]);
  const columns = useData<{ columns: { column: string }[] }>(`projects/${project}/columns`);
  const [[first, last], setRange] = useState([0, 40]);
  const [chosen, setChosen] = useState(new Set<number>());
  const [busy, setBusy] = useState("");
  const navigate = useNavigate();
  const cards = useMemo(() => offered(columns.data?.columns.map((one) => one.column) ?? []), [columns.data]);
  const path = (offset: number, limit: number) => {
    let filter = "";
    try {
      filter = filterOf(parse(view.text), view.archived);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
    }
    return `experiments-search${query({
      lean: true,
      projectId: project || undefined,
      filter,
      sort: view.sorts.map(([id, descending]) => `${id}=${descending ? "desc" : "asc"}`).join(","),
      columns: view.shown.filter((id) => !isFixed(id)),
      offset,
      limit,
    })}`;
  };
  const pages = Array.from(
    { length: Math.floor(Math.max(0, last - 1) / PAGE) - Math.floor(first / PAGE) + 1 },
    (_, at) => Math.floor(first / PAGE) + at,
  );
  const found = useQueries({
    queries: pages.map((page) => {
      const asked = path(page * PAGE, PAGE);
      return { queryKey: ["list", asked], queryFn: () => get<Found>(asked) };
    }),
  });
  useAgain(["experiments"], [["list"]], EVERY_MS);
  const error = found.find((one) => one.error)?.error ?? null;
  const told = found.find((one) => one.data)?.data?.pagination.total;
  // Who scrolls far is not thrown back to the top while the rows there are on their way.
  const known = useRef<number>(undefined);
  known.current = told ?? known.current;
  const total = known.current;
  const rows = new Map(
    found.flatMap(({ data }) => data?.experiments.map((row, at) => [data.pagination.startIndex! + at, row] as const) ?? []),
  );
  const toggle = (id: number) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const everything = async () => {
    if (chosen.size) return setChosen(new Set());
    const all = await get<Found>(path(0, MOST_CHOSEN));
    setChosen(new Set(all.experiments.map((row) => row.experiment.id)));
  };
  const exported = async () => {
    const lines: unknown[][] = [view.shown];
    for (let offset = 0; ; offset += FILE_PAGE) {
      const page = await get<Found>(path(offset, FILE_PAGE));
      lines.push(...page.experiments.map((row) => view.shown.map((id) => plain(id, row))));
      setBusy(`${Math.min(offset + FILE_PAGE, page.pagination.total)} of ${page.pagination.total}`);
      if (offset + FILE_PAGE >= page.pagination.total) break;
    }
    save("experiments.csv", csv(lines));
    setBusy("");
  };
  const compare = () => chosen.size > 0 && navigate(`/experiments/compare?e=${[...chosen].join(",")}`);
  useListKeys({ toggle, compare });
  const onView = useCallback((from: number, to: number) => setRange([from, to]), []);
  return (
    <>
      <h1>
        {named.data ? (
          <>
            <Link to={`/workspaces/${named.data.project.workspaceId}`}>{named.data.project.workspaceName}</Link> / {named.data.project.name}
          </>
        ) : (
          "Experiments"
        )}
      </h1>
      <div className="controls">
        <Filters text={view.text} columns={cards} onChange={(text) => view.set("q", text)} />
        <Picker
          offered={cards}
          shown={view.shown}
          pinned={view.pinned}
          onChange={(ids) => view.set("c", ids.join(","))}
          onPin={(count) => view.set("p", String(count))}
        />
        <label>
          rows
          <select value={view.height} onChange={(event) => view.set("h", event.target.value)}>
            {Object.keys(HEIGHTS).map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={view.archived} onChange={(event) => view.set("a", event.target.checked ? "1" : "")} />
          archived too
        </label>
        <button type="button" disabled={!chosen.size} title={chosen.size ? "c" : "Choose experiments first"} onClick={compare}>
          Compare {chosen.size || ""}
        </button>
        <button type="button" disabled={Boolean(busy)} onClick={() => void exported().catch(() => setBusy(""))}>
          {busy || "Export CSV"}
        </button>
        <span role="status">{total === undefined ? "" : `${total.toLocaleString("en")} found`}</span>
      </div>
      <Bulk ids={[...chosen]} onDone={() => setChosen(new Set())} />
      {error ? <Failure error={error} /> : null}
      {total === 0 && !error ? (
        <Empty command="det experiment create config.yaml .">
          {view.text ? "No experiment fits this query." : "No experiment yet. Submit one, and watch it here."}
        </Empty>
      ) : total === undefined && !error ? (
        <div className="skeleton tall" role="status" aria-label="Loading" />
      ) : (
        <Grid
          columns={view.shown.map(column)}
          widths={view.widths}
          pinned={view.pinned}
          sorts={view.sorts}
          total={total ?? 0}
          rowAt={(index) => rows.get(index)}
          height={HEIGHTS[view.height] ?? HEIGHTS.roomy!}
          choice={{ chosen, toggle, all: () => void everything() }}
          actions={(row) => <ActionMenu one={row.experiment} />}
          onSort={(sorts) => view.set("s", sorts.map(([id, descending]) => `${id}:${descending ? "desc" : "asc"}`).join(","))}
          onResize={(id, width) =>
            view.set(
              "w",
              Object.entries({ ...view.widths, [id]: Math.round(width) })
                .map((one) => one.join(":"))
                .join(","),
            )
          }
          onView={onView}
        />
      )}
    </>
  );
}
