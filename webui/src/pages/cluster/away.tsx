import { Link } from "react-router";

import { Card, Fold } from "../../ui/card";
import { Time } from "../../ui/text";
import type { Away } from "./facts";
import { many } from "../../parts/format";

const MOST_RUNS = 20;

/** Agents that were lost, and what happened to their trials. */
export const AwayCard = ({ agents }: { agents: Away[] }) => (
  <Card title="Disconnected agents" count={agents.length}>
    <div className="stack" style={{ gap: 6 }}>
      {agents.map((agent) => (
        <Fold
          key={`${agent.id} ${agent.goneTime}`}
          title={
            <span className="cut">
              <b>{agent.id}</b>{" "}
              <span className="ink2">
                {agent.resourcePools.join(", ")}, {many(agent.slots, "slot")}, disconnected since <Time at={agent.goneTime} />:{" "}
                {agent.reason}
              </span>
            </span>
          }
        >
          <ul style={{ paddingLeft: 22 }} className="sm">
            {agent.runs.slice(0, MOST_RUNS).map((run) => (
              <li key={`${run.trialId} ${run.since}`}>
                {run.experimentId && run.trialId ? (
                  <Link to={`/experiments/${run.experimentId}/trials/${run.trialId}/overview`}>{run.name}</Link>
                ) : (
                  run.name
                )}
                : {run.until ? `${run.outcome.replaceAll("_", " ")}, ${run.reason}` : "not heard of yet"}
              </li>
            ))}
            {agent.runs.length > MOST_RUNS && <li>{agent.runs.length - MOST_RUNS} more</li>}
            {!agent.runs.length && <li className="ink3">Nothing was running on it.</li>}
          </ul>
        </Fold>
      ))}
    </div>
  </Card>
);
