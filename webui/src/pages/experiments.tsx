import { createColumnHelper } from "@tanstack/react-table";
import { useMemo, useState } from "react";
import { useSearchParams } from "react-router";

import { query } from "../api/client";
import { useChange, useData } from "../api/data";
import type { Experiment, Pagination } from "../api/types";
import { Actions } from "../parts/actions";
import { Card, Empty, ExperimentLink, Failure, Loaded, Progress, State, Time } from "../parts/basics";
import { duration, number, size } from "../parts/format";
import { Table } from "../parts/table";

const PAGE = 50;
const STATES = ["ACTIVE", "RUNNING", "QUEUED", "PAUSED", "COMPLETED", "CANCELED", "ERROR"];
const SORTS: Record<string, string> = {
  id: "ID", name: "NAME", state: "STATE", numTrials: "NUM_TRIALS", progress: "PROGRESS", startTime: "START_TIME",
  username: "USER", resourcePool: "RESOURCE_POOL", best: "SEARCHER_METRIC_VAL", checkpointSize: "CHECKPOINT_SIZE",
};
const column = createColumnHelper<Experiment>();

export const COLUMNS = [
  column.accessor("id", { header: "ID", meta: "num", cell: ({ row }) => <ExperimentLink id={row.original.id} /> }),
  column.accessor("name", {
    header: "Name",
    cell: ({ row }) => (
      <>
        <ExperimentLink id={row.original.id}>{row.original.name}</ExperimentLink>{" "}
        {row.original.labels.map((label) => (
          <span className="label" key={label}>
            {label}
          </span>
        ))}
      </>
    ),
  }),
  column.accessor("state", { header: "State", cell: ({ row }) => <State state={row.original.state} why={row.original.stateReason} /> }),
  column.accessor("progress", { header: "Progress", cell: (cell) => <Progress value={cell.getValue()} /> }),
  column.accessor("numTrials", { header: "Trials", meta: "num" }),
  column.accessor("bestTrialSearcherMetric", {
    id: "best",
    header: "Best",
    meta: "num",
    cell: ({ row }) => <span title={row.original.searcherMetric}>{number(row.original.bestTrialSearcherMetric)}</span>,
  }),
  column.accessor("searcherType", { header: "Searcher", enableSorting: false }),
  column.accessor("startTime", { header: "Started", cell: (cell) => <Time at={cell.getValue()} /> }),
  column.accessor("duration", { header: "Duration", meta: "num", enableSorting: false, cell: (cell) => duration(cell.getValue()) }),
  column.accessor("username", { header: "User" }),
  column.accessor("resourcePool", { header: "Pool" }),
  column.accessor("checkpointSize", { header: "Checkpoints", meta: "num", cell: (cell) => size(cell.getValue()) }),
];

export function Experiments() {
  const [params, setParams] = useSearchParams();
  const [chosen, setChosen] = useState<number[]>([]);
  const set = (name: string, value: string) =>
    setParams((before) => {
      if (value) before.set(name, value);
      else before.delete(name);
      if (name !== "page") before.delete("page");
      return before;
    }, { replace: true });
  const page = Number(params.get("page") ?? 0);
  const [sort, descending] = [params.get("sort") ?? "id", params.get("order") !== "asc"];
  const path = `experiments${query({
    lean: true,
    limit: PAGE,
    offset: page * PAGE,
    name: params.get("name"),
    states: params.get("state") && `STATE_${params.get("state")}`,
    archived: params.get("archived") ? undefined : false,
    sortBy: `SORT_BY_${SORTS[sort] ?? "ID"}`,
    orderBy: descending ? "ORDER_BY_DESC" : "ORDER_BY_ASC",
  })}`;
  const found = useData<{ experiments: Experiment[]; pagination: Pagination }>(path, ["experiments"], true);
  const many = useChange((answer) => {
    const failed = answer.results.filter((one: { error: string }) => one.error);
    if (failed.length) alert(failed.map((one: { id: number; error: string }) => `${one.id}: ${one.error}`).join("\n"));
    setChosen([]);
  });
  const columns = useMemo(
    () => [
      column.display({
        id: "choose",
        header: () => <span className="hidden">Choose</span>,
        cell: ({ row }) => (
          <input
            type="checkbox"
            aria-label={`Choose experiment ${row.original.id}`}
            checked={chosen.includes(row.original.id)}
            onChange={(event) =>
              setChosen(event.target.checked ? [...chosen, row.original.id] : chosen.filter((id) => id !== row.original.id))
            }
          />
        ),
      }),
      ...COLUMNS,
      column.display({ id: "actions", header: () => <span className="hidden">Actions</span>, cell: ({ row }) => <Actions one={row.original} names={["Pause", "Activate", "Kill"]} /> }),
    ],
    [chosen],
  );
  return (
    <>
      <h1>Experiments</h1>
      <div className="controls">
        <label>
          name
          <input type="search" defaultValue={params.get("name") ?? ""} onChange={(event) => set("name", event.target.value)} />
        </label>
        <label>
          state
          <select value={params.get("state") ?? ""} onChange={(event) => set("state", event.target.value)}>
            <option value="">any</option>
            {STATES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          <input type="checkbox" checked={Boolean(params.get("archived"))} onChange={(event) => set("archived", event.target.checked ? "1" : "")} />
          archived too
        </label>
        {chosen.length > 0 && (
          <span className="actions">
            {["activate", "pause", "cancel", "kill", "archive"].map((verb) => (
              <button key={verb} type="button" onClick={() => many.mutate({ method: "POST", path: `experiments/${verb}`, body: { experimentIds: chosen } })}>
                {verb} {chosen.length}
              </button>
            ))}
          </span>
        )}
      </div>
      {many.error ? <Failure error={many.error} /> : null}
      <Card>
        <Loaded found={found}>
          {({ experiments, pagination }) =>
            experiments.length ? (
              <>
                <Table
                  name="Experiments"
                  rows={experiments}
                  columns={columns}
                  onSort={(id, desc) => setParams((before) => (before.set("sort", id), before.set("order", desc ? "desc" : "asc"), before))}
                />
                <nav className="pages" aria-label="Pages">
                  <button type="button" disabled={page === 0} onClick={() => set("page", String(page - 1))}>
                    Newer
                  </button>
                  <span>
                    {pagination.offset + 1} to {Math.min(pagination.offset + PAGE, pagination.total)} of {pagination.total}
                  </span>
                  <button type="button" disabled={(page + 1) * PAGE >= pagination.total} onClick={() => set("page", String(page + 1))}>
                    Older
                  </button>
                </nav>
              </>
            ) : (
              <Empty command="det experiment create config.yaml .">No experiment fits. Submit one, and watch it here.</Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}
