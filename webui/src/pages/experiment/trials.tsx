import { createColumnHelper } from "@tanstack/react-table";
import { useMemo } from "react";

import type { Experiment, Trial } from "../../api/types";
import { Card, Empty, State, Time, TrialLink } from "../../parts/basics";
import { colour, duration, flat, number, size } from "../../parts/format";
import { Table } from "../../parts/table";

const column = createColumnHelper<Trial>();

export const metricOf = (trial: Trial, which: "bestValidation" | "latestValidation", metric: string) => {
  const value = trial[which]?.metrics.avgMetrics[metric];
  return typeof value === "number" ? value : null;
};

export function Trials({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const names = useMemo(() => [...new Set(trials.flatMap((trial) => Object.keys(flat(trial.hparams))))], [trials]);
  const columns = useMemo(
    () => [
      column.accessor("id", {
        header: "ID",
        meta: "num",
        cell: (cell) => (
          <>
            <span className="dot" style={{ background: colour(cell.getValue()) }} aria-hidden />{" "}
            <TrialLink experiment={one.id} id={cell.getValue()} />
          </>
        ),
      }),
      column.accessor("state", { header: "State", cell: ({ row }) => <State state={row.original.state} why={row.original.stateReason} /> }),
      column.accessor("totalBatchesProcessed", { header: "Batches", meta: "num", cell: (cell) => number(cell.getValue()) }),
      column.accessor((trial) => metricOf(trial, "bestValidation", one.searcherMetric), {
        id: "best",
        header: `Best ${one.searcherMetric}`,
        meta: "num",
        sortUndefined: "last",
        cell: (cell) => number(cell.getValue()),
      }),
      column.accessor((trial) => metricOf(trial, "latestValidation", one.searcherMetric), {
        id: "latest",
        header: "Latest",
        meta: "num",
        cell: (cell) => number(cell.getValue()),
      }),
      ...names.map((name) =>
        column.accessor((trial) => flat(trial.hparams)[name] as string | number, {
          id: `hp.${name}`,
          header: name,
          meta: "num",
          cell: (cell) => number(cell.getValue()),
        }),
      ),
      column.accessor("restarts", { header: "Restarts", meta: "num" }),
      column.accessor("startTime", { header: "Started", cell: (cell) => <Time at={cell.getValue()} /> }),
      column.accessor("wallClockTime", { header: "Ran", meta: "num", cell: (cell) => duration(cell.getValue()) }),
      column.accessor("totalCheckpointSize", { header: "Checkpoints", meta: "num", cell: (cell) => size(cell.getValue()) }),
    ],
    [one.id, one.searcherMetric, names],
  );
  if (!trials.length) return <Empty>No trial yet. They appear here as the search asks for them.</Empty>;
  return (
    <Card>
      <Table name="Trials" rows={trials} columns={columns} />
    </Card>
  );
}
