/** What a trial reported and stored: statistics of each metric, and everything in order of batches. */

import { query } from "../api/client";
import { useData } from "../api/data";
import type { Pagination, Summary, Trial } from "../api/types";
import { useLink } from "../charts/link";
import { isProfile } from "../charts/names";
import { titleOf } from "../charts/titles";
import { Button } from "../ui/button";
import { Card } from "../ui/card";
import { Select } from "../ui/field";
import { State } from "../ui/state";
import { Empty, Loaded } from "../ui/status";
import { type Column, Table } from "../ui/table";
import { Cut, Tag, Time } from "../ui/text";
import { digits, number, size } from "../parts/format";

const GROUPS: Record<string, string> = { avg_metrics: "training", validation_metrics: "validation" };
const PAGE = 100;
const REST_MS = 2000;
const FILTERS: [string, string][] = [
  ["", "all"],
  ["VALIDATION", "validations"],
  ["CHECKPOINT", "checkpoints"],
  ["CHECKPOINT_OR_VALIDATION", "validations and checkpoints"],
];

interface Report {
  endTime: string;
  totalBatches: number;
  group: string;
  metrics: { avgMetrics: Record<string, unknown> };
}
interface Stored {
  uuid: string;
  endTime: string;
  state: string;
  totalBatches: number;
  resources: Record<string, string>;
}
interface Workload {
  training?: Report;
  validation?: Report;
  checkpoint?: Stored;
}

const SHOWN = 60;

/** Newest first; the address says which page is shown. */
export function Workloads({ trial, topics }: { trial: Trial; topics: string[] }) {
  const { params, set } = useLink();
  const page = Number(params.get("pg")) || 0;
  const filter = params.get("w") ?? "";
  const path = `trials/${trial.id}/workloads${query({ filter: filter && `FILTER_OPTION_${filter}`, limit: PAGE, offset: page * PAGE, orderBy: "ORDER_BY_DESC" })}`;
  const answer = useData<{ workloads: Workload[]; pagination: Pagination }>(path, topics, true, REST_MS);
  return (
    <Card
      title="Workloads"
      flush
      more={<Select label="Show" value={filter} options={FILTERS} onChange={(value) => set({ w: value, pg: "" })} small />}
    >
      <Loaded answer={answer}>
        {({ workloads, pagination }) =>
          workloads.length ? (
            <>
              <Table name="Workloads" rows={workloads} id={keyOf} columns={columnsOf(workloads, trial.bestCheckpoint?.uuid)} />
              {pagination.total > PAGE && (
                <nav className="pages" aria-label="Pages">
                  <Button
                    small
                    not={page === 0 ? "These are the newest" : undefined}
                    onClick={() => set({ pg: page > 1 ? String(page - 1) : "" })}
                  >
                    Newer
                  </Button>
                  <span className="sm ink2">
                    {pagination.offset + 1} to {pagination.offset + workloads.length} of {pagination.total.toLocaleString("en")}
                  </span>
                  <Button
                    small
                    not={(page + 1) * PAGE >= pagination.total ? "These are the oldest" : undefined}
                    onClick={() => set({ pg: String(page + 1) })}
                  >
                    Older
                  </Button>
                </nav>
              )}
            </>
          ) : (
            <Empty>Nothing of this kind has been reported.</Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function columnsOf(workloads: Workload[], best?: string): Column<Workload>[] {
  const names = [...new Set(workloads.flatMap((workload) => Object.keys(reportOf(workload)?.metrics.avgMetrics ?? {})))]
    .sort()
    .slice(0, SHOWN);
  return [
    {
      id: "batches",
      head: "Batches",
      width: 92,
      num: true,
      cell: (workload) => number((reportOf(workload) ?? workload.checkpoint)!.totalBatches),
    },
    { id: "kind", head: "Kind", width: 104, cell: (workload) => <span className="ink2">{reportOf(workload)?.group ?? "checkpoint"}</span> },
    ...names.map((name) => ({
      id: `metric.${name}`,
      head: name,
      width: 118,
      num: true,
      title: (workload: Workload) => textOf(reportOf(workload)?.metrics.avgMetrics[name]),
      cell: (workload: Workload) => shown(reportOf(workload)?.metrics.avgMetrics[name]),
    })),
    {
      id: "checkpoint",
      head: "Checkpoint",
      width: 280,
      cell: ({ checkpoint: stored }) =>
        stored && (
          <>
            <code>{stored.uuid.slice(0, 8)}</code> {size(Object.values(stored.resources).reduce((sum, bytes) => sum + Number(bytes), 0))}{" "}
            <State state={stored.state} /> {stored.uuid === best && <Tag kind="best">best</Tag>}
          </>
        ),
    },
    { id: "when", head: "When", cell: (workload) => <Time at={(reportOf(workload) ?? workload.checkpoint)!.endTime} /> },
  ];
}

const reportOf = (workload: Workload) => workload.training ?? workload.validation;
const textOf = (value: unknown) => (value === undefined ? "" : String(value));
const shown = (value: unknown) =>
  typeof value === "object" ? JSON.stringify(value) : typeof value === "number" && !Number.isInteger(value) ? digits(value) : number(value);
const keyOf = (workload: Workload) => {
  const report = reportOf(workload);
  return report ? `${report.group} ${report.totalBatches} ${report.endTime}` : workload.checkpoint!.uuid;
};

interface Summed {
  group: string;
  name: string;
  summary: Summary;
}
const called = ({ group, name }: Summed) => {
  const { text, unit } = titleOf(name, isProfile(group));
  return unit ? `${text}, ${unit}` : text;
};

const SUMMED: Column<Summed>[] = [
  { id: "name", head: "Metric", name: true, cell: (row) => <Cut>{called(row)}</Cut>, value: called },
  {
    id: "group",
    head: "Group",
    width: 120,
    small: true,
    under: true,
    cell: ({ group }) => <span className="ink2">{group}</span>,
    value: ({ group }) => group,
  },
  { id: "last", head: "Last", width: 120, num: true, small: true, cell: ({ summary }) => shown(summary.last) },
  {
    id: "min",
    head: "Minimum",
    width: 120,
    num: true,
    cell: ({ summary }) => shown(summary.min),
    value: ({ summary }) => summary.min ?? null,
  },
  {
    id: "max",
    head: "Maximum",
    width: 120,
    num: true,
    cell: ({ summary }) => shown(summary.max),
    value: ({ summary }) => summary.max ?? null,
  },
  {
    id: "mean",
    head: "Mean",
    width: 120,
    num: true,
    cell: ({ summary }) => shown(summary.mean),
    value: ({ summary }) => summary.mean ?? null,
  },
  {
    id: "reports",
    head: "Reports",
    width: 92,
    num: true,
    cell: ({ summary }) => number(summary.count),
    value: ({ summary }) => summary.count,
  },
];

/** Statistics of each metric over everything that was reported. */
export function Summaries({ trial }: { trial: Trial }) {
  const rows = Object.entries(trial.summaryMetrics).flatMap(([group, metrics]) =>
    Object.entries(metrics).map(([name, summary]) => ({ group: GROUPS[group] ?? group, name, summary })),
  );
  return (
    <Card title="Metrics" count={rows.length} flush>
      <Table
        name="Metrics"
        rows={rows}
        id={({ group, name }) => `${group}.${name}`}
        columns={SUMMED}
        empty={<Empty>Nothing has been reported.</Empty>}
      />
    </Card>
  );
}
