/** What a trial reported and stored: statistics of each metric, and everything in order of batches. */

import { query } from "../api/client";
import { useData } from "../api/data";
import type { Pagination, Trial } from "../api/types";
import { useLink } from "../charts/link";
import { Card } from "../ui/card";
import { State } from "../ui/state";
import { Empty, Loaded } from "../ui/status";
import { Time } from "../ui/text";
import { number, size } from "../parts/format";

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

/** Newest first; which part is looked at lies in the address. */
export function Workloads({ trial, topics }: { trial: Trial; topics: string[] }) {
  const { params, set } = useLink();
  const page = Number(params.get("pg")) || 0;
  const filter = params.get("w") ?? "";
  const path = `trials/${trial.id}/workloads${query({ filter: filter && `FILTER_OPTION_${filter}`, limit: PAGE, offset: page * PAGE, orderBy: "ORDER_BY_DESC" })}`;
  const found = useData<{ workloads: Workload[]; pagination: Pagination }>(path, topics, true, REST_MS);
  return (
    <Card
      title="Workloads"
      more={
        <label className="soft">
          show{" "}
          <select value={filter} onChange={(event) => set({ w: event.target.value, pg: "" })}>
            {FILTERS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Loaded found={found}>
        {({ workloads, pagination }) =>
          workloads.length ? (
            <>
              <Rows workloads={workloads} best={trial.bestCheckpoint?.uuid} />
              <nav className="pages" aria-label="Pages">
                <button type="button" disabled={page === 0} onClick={() => set({ pg: page > 1 ? String(page - 1) : "" })}>
                  Newer
                </button>
                <span>
                  {pagination.offset + 1} to {pagination.offset + workloads.length} of {pagination.total.toLocaleString("en")}
                </span>
                <button type="button" disabled={(page + 1) * PAGE >= pagination.total} onClick={() => set({ pg: String(page + 1) })}>
                  Older
                </button>
              </nav>
            </>
          ) : (
            <Empty>Nothing of this kind has been reported.</Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function Rows({ workloads, best }: { workloads: Workload[]; best?: string }) {
  const names = [...new Set(workloads.flatMap((one) => Object.keys((one.training ?? one.validation)?.metrics.avgMetrics ?? {})))]
    .sort()
    .slice(0, SHOWN);
  return (
    <div className="scroll" tabIndex={0}>
      <table aria-label="Workloads">
        <thead>
          <tr>
            <th className="num">Batches</th>
            <th>Kind</th>
            {names.map((name) => (
              <th key={name} className="num">
                {name}
              </th>
            ))}
            <th>Checkpoint</th>
            <th>When</th>
          </tr>
        </thead>
        <tbody>
          {workloads.map((one, at) => {
            const report = one.training ?? one.validation;
            const stored = one.checkpoint;
            return (
              <tr key={at}>
                <td className="num">{number((report ?? stored)!.totalBatches)}</td>
                <td>{report ? report.group : "checkpoint"}</td>
                {names.map((name) => {
                  const value = report?.metrics.avgMetrics[name];
                  return (
                    <td key={name} className="num" title={value === undefined ? "" : String(value)}>
                      {typeof value === "object" ? JSON.stringify(value) : number(value)}
                    </td>
                  );
                })}
                <td>
                  {stored && (
                    <>
                      <code>{stored.uuid.slice(0, 8)}</code>{" "}
                      {size(Object.values(stored.resources).reduce((sum, bytes) => sum + Number(bytes), 0))} <State state={stored.state} />
                      {stored.uuid === best && <span className="label">best</span>}
                    </>
                  )}
                </td>
                <td>
                  <Time at={(report ?? stored)!.endTime} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function Summaries({ trial }: { trial: Trial }) {
  return (
    <Card>
      <table aria-label="Metrics">
        <thead>
          <tr>
            <th>Group</th>
            <th>Metric</th>
            <th className="num">Last</th>
            <th className="num">Minimum</th>
            <th className="num">Maximum</th>
            <th className="num">Mean</th>
            <th className="num">Reports</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(trial.summaryMetrics).flatMap(([group, metrics]) =>
            Object.entries(metrics).map(([name, one]) => (
              <tr key={`${group}.${name}`}>
                <td>{GROUPS[group] ?? group}</td>
                <td>{name}</td>
                <td className="num">{typeof one.last === "object" ? JSON.stringify(one.last) : number(one.last)}</td>
                <td className="num">{number(one.min)}</td>
                <td className="num">{number(one.max)}</td>
                <td className="num">{number(one.mean)}</td>
                <td className="num">{one.count}</td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </Card>
  );
}
