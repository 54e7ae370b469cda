import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "react-router";

import { get, query, stream } from "../api/client";
import { useData, useMe } from "../api/data";
import type { Agent, Experiment, Job, LogLine, Pagination, Trial } from "../api/types";
import { column, type Row } from "../lists/columns";
import { field, filterOf } from "../lists/query";
import { Card, Empty, ExperimentLink, Loaded, State, Time } from "../parts/basics";
import { number } from "../parts/format";
import { Spark } from "../parts/spark";
import { seenProjects } from "../parts/seen";

const HOUR_MS = 3_600_000;
const SHOWN = 15;
const REST_MS = 1000;
const POINTS = 40;
const COLUMNS = ["id", "name", "state", "progress", "numTrials", "searcherMetricsVal"].map(column);
const LATER = ["searcherType", "startTime", "duration", "user"].map(column);

interface Found {
  experiments: Row[];
  pagination: Pagination;
}

const search = (filter: string, sort: string, limit: number) => `experiments-search${query({ lean: true, filter, sort, limit })}`;
const matching = (...children: ReturnType<typeof field>[]) => filterOf({ kind: "group", conjunction: "and", children }, false);

export function Dashboard() {
  const me = useMe();
  const since = new Date(Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 24 * HOUR_MS).toISOString();
  const recent = useData<Found>(search(matching(), "id=desc", SHOWN), ["experiments"], false, REST_MS);
  const failed = useData<Found>(
    search(matching(field("state", "=", "ERROR"), field("endTime", ">", since)), "endTime=desc", 10),
    ["experiments"],
    false,
    REST_MS,
  );
  const name = me.data?.user.username;
  const strangers = recent.data?.experiments.some((row) => row.experiment.username !== name);
  const mine = useData<Found>(
    name && strangers ? search(matching(field("user", "=", name)), "id=desc", 5) : null,
    ["experiments"],
    false,
    REST_MS,
  );
  const agents = useData<{ agents: Agent[] }>("agents", ["cluster"]);
  const queue = useData<{ jobs: Job[] }>("job-queues", ["queue", "experiments"]);
  const slots = agents.data?.agents.flatMap((agent) => Object.values(agent.slots)) ?? [];
  const waiting = queue.data?.jobs.filter((job) => job.summary.state === "STATE_QUEUED").length ?? 0;
  return (
    <>
      <h1>Dashboard</h1>
      <div className="figures">
        <Link to="/clusters">
          <strong>
            {slots.filter((slot) => slot.container).length} / {slots.length}
          </strong>{" "}
          slots in use
        </Link>
        <Link to="/clusters">
          <strong>{agents.data?.agents.length ?? "…"}</strong> {agents.data?.agents.length === 1 ? "agent" : "agents"}
        </Link>
        <Link to="/jobs">
          <strong>{waiting}</strong> {waiting === 1 ? "job waits" : "jobs wait"}
        </Link>
        <Link to="/experiments">
          <strong>{recent.data?.pagination.total.toLocaleString("en") ?? "…"}</strong> experiments
        </Link>
        {seenProjects().map(([id, project]) => (
          <Link key={id} to={`/projects/${id}/experiments`}>
            project <strong>{project}</strong>
          </Link>
        ))}
      </div>
      {failed.data && failed.data.experiments.length > 0 && (
        <Card title="Failed in the last day">
          <ul className="plain">
            {failed.data.experiments.map(({ experiment }) => (
              <Failed key={experiment.id} one={experiment} />
            ))}
          </ul>
        </Card>
      )}
      {mine.data && mine.data.experiments.length > 0 && (
        <Card title="My recent submissions">
          <Experiments name="My recent submissions" rows={mine.data.experiments} />
        </Card>
      )}
      <Card title="Recent experiments" more={<Link to="/experiments">all</Link>}>
        <Loaded found={recent}>
          {({ experiments }) =>
            experiments.length ? (
              <Experiments name="Recent experiments" rows={experiments} />
            ) : (
              <Empty command="det experiment create config.yaml .">No experiment yet. Submit one, and watch it here.</Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}

interface Series {
  trials: { trial: Trial; metrics: { group: string; data: { values: Record<string, unknown> }[] }[] }[];
}

/** The searcher's metric of the best trial of each experiment, in one question. */
function useSparks(rows: Row[]): Map<number, number[]> {
  const told = rows.map((row) => row.experiment).filter((one) => one.bestTrialId !== null);
  const names = [...new Set(told.map((one) => one.searcherMetric))];
  const path = `trials/time-series${query({ trialIds: told.map((one) => one.bestTrialId), metricNames: names, group: "validation", maxDatapoints: POINTS })}`;
  const found = useData<Series>(told.length ? path : null, ["experiments"], true, REST_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is told comes of `rows`
  return useMemo(() => {
    const metric = new Map(told.map((one) => [one.bestTrialId, one] as const));
    return new Map(
      (found.data?.trials ?? []).flatMap(({ trial, metrics }) => {
        const one = metric.get(trial.id);
        const values = metrics
          .flatMap(({ data }) => data.map((point) => point.values[one?.searcherMetric ?? ""]))
          .filter((value) => typeof value === "number");
        return one ? [[one.id, values] as const] : [];
      }),
    );
  }, [found.data, rows]);
}

function Experiments({ name, rows }: { name: string; rows: Row[] }) {
  const sparks = useSparks(rows);
  const cell = (one: (typeof COLUMNS)[number], row: Row) => (
    <td key={one.id} className={one.kind === "NUMBER" ? "num" : ""}>
      {one.cell(row)}
    </td>
  );
  const head = (one: (typeof COLUMNS)[number]) => (
    <th key={one.id} className={one.kind === "NUMBER" ? "num" : ""}>
      {one.label}
    </th>
  );
  return (
    <div className="scroll">
      <table aria-label={name}>
        <thead>
          <tr>
            {COLUMNS.map(head)}
            <th>Course</th>
            {LATER.map(head)}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const values = sparks.get(row.experiment.id) ?? [];
            return (
              <tr key={row.experiment.id}>
                {COLUMNS.map((one) => cell(one, row))}
                <td>
                  <Spark values={values} title={`${row.experiment.searcherMetric} from ${number(values[0])} to ${number(values.at(-1))}`} />
                </td>
                {LATER.map((one) => cell(one, row))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

const TELLING = /error|exception|critical|fatal|killed|out of memory/i;

/** The line that most likely tells why: the last that speaks of an error, else the last one. */
async function lastError(id: number): Promise<{ trial: number; text: string } | null> {
  const { trials } = await get<{ trials: Trial[] }>(`experiments/${id}/trials?states=STATE_ERROR&limit=1`);
  if (!trials[0]) return null;
  const lines: LogLine[] = [];
  for await (const page of stream<LogLine>(`trials/${trials[0].id}/logs?limit=50&orderBy=ORDER_BY_DESC`, new AbortController().signal))
    lines.push(...page);
  const told = lines.map((line) => line.log.trim()).filter(Boolean);
  return { trial: trials[0].id, text: told.find((text) => TELLING.test(text)) ?? told[0] ?? "" };
}

function Failed({ one }: { one: Experiment }) {
  const line = useQuery({ queryKey: ["last error", one.id, one.endTime], queryFn: () => lastError(one.id), staleTime: Infinity });
  const to = line.data ? `/experiments/${one.id}/trials/${line.data.trial}/logs` : `/experiments/${one.id}/logs`;
  return (
    <li>
      <State state={one.state} /> <ExperimentLink id={one.id}>{`${one.id} ${one.name}`}</ExperimentLink>{" "}
      <span className="soft">{one.stateReason}</span> <Time at={one.endTime} /> <Link to={to}>log</Link>
      {line.data?.text && (
        <>
          {" "}
          <code className="bad">{line.data.text.slice(0, 300)}</code>
        </>
      )}
    </li>
  );
}
