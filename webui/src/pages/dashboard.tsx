import { Link } from "react-router";

import { useData } from "../api/data";
import type { Agent, Experiment, Job, Pagination } from "../api/types";
import { Card, Empty, ExperimentLink, Loaded, State, Time } from "../parts/basics";
import { Table } from "../parts/table";
import { COLUMNS } from "./experiments";

const DAY_MS = 86_400_000;

export function Dashboard() {
  const recent = useData<{ experiments: Experiment[]; pagination: Pagination }>(
    "experiments?lean=true&limit=20&archived=false&sortBy=SORT_BY_ID&orderBy=ORDER_BY_DESC",
    ["experiments"],
  );
  const agents = useData<{ agents: Agent[] }>("agents", ["cluster"]);
  const queue = useData<{ jobs: Job[] }>("job-queues", ["queue", "experiments"]);
  const slots = agents.data?.agents.flatMap((agent) => Object.values(agent.slots)) ?? [];
  const waiting = queue.data?.jobs.filter((job) => job.summary.state === "STATE_QUEUED") ?? [];
  const failed = (recent.data?.experiments ?? []).filter(
    (one) => one.state === "STATE_ERROR" && one.endTime && Date.now() - Date.parse(one.endTime) < DAY_MS,
  );
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
          <strong>{agents.data?.agents.length ?? "…"}</strong> agents
        </Link>
        <Link to="/jobs">
          <strong>{waiting.length}</strong> jobs wait
        </Link>
        <Link to="/experiments">
          <strong>{recent.data?.pagination.total ?? "…"}</strong> experiments
        </Link>
      </div>
      {failed.length > 0 && (
        <Card title="Failed in the last day">
          <ul className="plain">
            {failed.map((one) => (
              <li key={one.id}>
                <State state={one.state} /> <ExperimentLink id={one.id}>{`${one.id} ${one.name}`}</ExperimentLink>{" "}
                <span className="bad">{one.stateReason}</span> <Time at={one.endTime} />{" "}
                <Link to={`/experiments/${one.id}/logs`}>log</Link>
              </li>
            ))}
          </ul>
        </Card>
      )}
      <Card title="Recent experiments">
        <Loaded found={recent}>
          {({ experiments }) =>
            experiments.length ? (
              <Table name="Recent experiments" rows={experiments} columns={COLUMNS} />
            ) : (
              <Empty command="det experiment create config.yaml .">No experiment yet. Submit one, and watch it here.</Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}
