import { useState } from "react";
import { Link } from "react-router";

import { useChange, useData, useMe } from "../api/data";
import type { Agent, Slot } from "../api/types";
import { type Asked, Card, Confirm, Copyable, Empty, Failure, Loaded, Time } from "../parts/basics";
import { duration } from "../parts/format";
import { Usage } from "./cluster/usage";

interface Tasks {
  allocationIdToSummary: Record<string, { name: string; taskId: string; resources: { containerId: string }[] }>;
}
interface Pool {
  name: string;
  description: string;
  numAgents: number;
  slotsAvailable: number;
  slotsUsed: number;
  slotsPerAgent: number;
  schedulerType: string;
  schedulerFittingPolicy: string;
  stats: { queuedCount: number; scheduledCount: number };
}
interface Run {
  name: string;
  experimentId: number | null;
  trialId: number | null;
  since: string;
  until: string | null;
  outcome: string;
  reason: string;
}
interface Strip {
  agentId: string;
  slotId: string;
  runs: Run[];
}
interface Away {
  id: string;
  resourcePools: string[];
  slots: number;
  goneTime: string;
  reason: string;
  runs: Run[];
}

/** Of a task of a trial; a task of another kind has none. */
const experimentOf = (taskId: string) => (/^\d+\./.test(taskId) ? Number(taskId.split(".")[0]) : null);

export function Cluster() {
  const agents = useData<{ agents: Agent[] }>("agents", ["cluster"]);
  const me = useMe();
  const admin = me.data?.user.admin ?? false;
  const not = admin ? "" : "Only administrators may";
  const tasks = useData<Tasks>("tasks", ["cluster"]);
  const strips = useData<{ slots: Strip[] }>("cluster/slots", ["cluster"], true, REST_MS);
  const away = useData<{ agents: Away[] }>("cluster/away", ["cluster"]);
  const [lit, setLit] = useState<string | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChange();
  const users = new Map(
    Object.values(tasks.data?.allocationIdToSummary ?? {}).flatMap((one) => one.resources.map((part) => [part.containerId, one] as const)),
  );
  const past = new Map(strips.data?.slots.map((one) => [`${one.agentId} ${one.slotId}`, one.runs]));
  const slots = agents.data?.agents.flatMap((agent) => Object.values(agent.slots)) ?? [];
  const act = (agent: Agent, verb: string, body?: object) => change.mutate({ method: "POST", path: `agents/${agent.id}/${verb}`, body });
  const disable = (agent: Agent) => {
    const busy = Object.values(agent.slots).filter((slot) => slot.container).length;
    if (!busy) return act(agent, "disable");
    setAsked({
      title: `Disable ${agent.id}?`,
      text: `What runs on ${busy} of its slots ends at once and is started again elsewhere. Drain lets it come to its end.`,
      verb: "Disable",
      act: () => act(agent, "disable"),
    });
  };
  return (
    <>
      <h1>Cluster</h1>
      <p className="soft">
        {slots.filter((slot) => slot.container).length} of {slots.length} slots in use
      </p>
      <Pools />
      {change.error ? <Failure error={change.error} /> : null}
      <Confirm asked={asked} onClose={() => setAsked(null)} />
      <Loaded found={agents}>
        {({ agents }) =>
          agents.length ? (
            <div className="agents">
              {agents.map((agent) => (
                <Card
                  key={agent.id}
                  title={agent.id}
                  more={
                    <span className="actions">
                      {agent.enabled ? (
                        <>
                          <button type="button" disabled={!admin} title={not} onClick={() => act(agent, "disable", { drain: true })}>
                            Drain
                          </button>
                          <button type="button" disabled={!admin} title={not} onClick={() => disable(agent)}>
                            Disable
                          </button>
                        </>
                      ) : (
                        <button type="button" disabled={!admin} title={not} onClick={() => act(agent, "enable")}>
                          Enable
                        </button>
                      )}
                    </span>
                  }
                >
                  <p className="soft">
                    {agent.resourcePools.join(", ")} · {agent.addresses.join(", ")} · here since <Time at={agent.registeredTime} />
                    {agent.draining ? " · draining" : agent.enabled ? "" : " · disabled"}
                  </p>
                  <ul className="slots">
                    {Object.values(agent.slots).map((slot) => (
                      <SlotBox
                        key={slot.id}
                        agent={agent}
                        slot={slot}
                        not={not}
                        user={slot.container ? users.get(slot.container.id) : undefined}
                        past={past.get(`${agent.id} ${slot.id}`) ?? []}
                        lit={lit}
                        onLight={setLit}
                        onSwitch={(verb, body) => act(agent, `slots/${slot.id}/${verb}`, body)}
                      />
                    ))}
                  </ul>
                </Card>
              ))}
            </div>
          ) : (
            <Empty command="det deploy local cluster-up">No agent is here. Trials wait until one comes.</Empty>
          )
        }
      </Loaded>
      {away.data && away.data.agents.length > 0 && (
        <Card title="Agents that are away">
          {away.data.agents.map((one) => (
            <AwayAgent key={one.id} one={one} />
          ))}
        </Card>
      )}
      <Usage />
      <p className="soft">
        What was decided, in words: <Link to="/system/events">events</Link> or <Copyable text="det master logs --follow" />
        {me.data?.user.admin && (
          <>
            . Who did what: <Link to="/system/audit">audit</Link> or <Copyable text="det master audit" />
          </>
        )}
      </p>
    </>
  );
}

function Pools() {
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["cluster", "queue"]);
  return (
    <Card title="Resource pools">
      <Loaded found={pools}>
        {({ resourcePools }) => (
          <div className="scroll">
            <table aria-label="Resource pools">
              <thead>
                <tr>
                  <th>Pool</th>
                  <th>Scheduler</th>
                  <th>Fitting</th>
                  <th className="num">Agents</th>
                  <th className="num">Slots per agent</th>
                  <th className="num">Slots used</th>
                  <th>Queue</th>
                </tr>
              </thead>
              <tbody>
                {resourcePools.map((pool) => (
                  <tr key={pool.name}>
                    <td title={pool.description}>{pool.name}</td>
                    <td>{pool.schedulerType.replace("SCHEDULER_TYPE_", "").toLowerCase().replace("_", " ")}</td>
                    <td>{pool.schedulerFittingPolicy.replace("FITTING_POLICY_", "").toLowerCase()}</td>
                    <td className="num">{pool.numAgents}</td>
                    <td className="num">{pool.slotsPerAgent}</td>
                    <td className="num">
                      {pool.slotsUsed} / {pool.slotsAvailable}
                    </td>
                    <td>
                      <Link to={`/resourcepool/${encodeURIComponent(pool.name)}`}>
                        {pool.stats.scheduledCount} active, {pool.stats.queuedCount} queued
                      </Link>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Loaded>
    </Card>
  );
}

function SlotBox({
  agent,
  slot,
  not,
  user,
  past,
  lit,
  onLight,
  onSwitch,
}: {
  agent: Agent;
  slot: Slot;
  /** Why whoever looks may not switch it; empty where they may. */
  not: string;
  user?: { name: string; taskId: string };
  past: Run[];
  /** The task that one points at: all of its slots light up. */
  lit: string | null;
  onLight: (task: string | null) => void;
  onSwitch: (verb: string, body?: object) => void;
}) {
  const kind = !slot.enabled ? "off" : slot.container ? "busy" : "free";
  const experiment = user ? experimentOf(user.taskId) : null;
  const group = experiment === null ? (user?.taskId ?? null) : String(experiment);
  const words = kind === "busy" ? (user?.name ?? "in use") : kind === "off" ? (slot.draining ? "draining" : "disabled") : "free";
  return (
    <li
      className={`${kind} ${group !== null && group === lit ? "lit" : ""}`}
      onMouseEnter={() => onLight(group)}
      onMouseLeave={() => onLight(null)}
    >
      <span className="actions">
        <span className="num">{slot.id}</span>{" "}
        <span className="soft">{`${slot.device.type.replace("TYPE_", "")} ${slot.device.brand}`}</span>
        {experiment !== null ? (
          <Link to={`/experiments/${experiment}/overview`} onFocus={() => onLight(group)} onBlur={() => onLight(null)}>
            {words}
          </Link>
        ) : (
          words
        )}
        {slot.enabled ? (
          <button
            type="button"
            className="more"
            disabled={not !== ""}
            title={not}
            aria-label={`Drain slot ${slot.id} of ${agent.id}`}
            onClick={() => onSwitch("disable", { drain: true })}
          >
            Drain
          </button>
        ) : (
          <button
            type="button"
            className="more"
            disabled={not !== ""}
            title={not}
            aria-label={`Enable slot ${slot.id} of ${agent.id}`}
            onClick={() => onSwitch("enable")}
          >
            Enable
          </button>
        )}
      </span>
      <PastStrip runs={past} />
    </li>
  );
}

const REST_MS = 5000;
const DAY_MS = 86_400_000;

/** The last day of a slot: where something ran. */
function PastStrip({ runs }: { runs: Run[] }) {
  if (!runs.length) return null;
  const now = Date.now();
  const place = (at: string | null) => Math.max(0, Math.min(100, 100 * (1 - (now - (at ? Date.parse(at) : now)) / DAY_MS)));
  const told = (run: Run) =>
    `${run.name}: ${duration(((run.until ? Date.parse(run.until) : now) - Date.parse(run.since)) / 1000)}${run.outcome && `, ${run.outcome}`}`;
  return (
    <svg className="past" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={`The last day: ${runs.length} runs`}>
      {runs.map((run) => (
        <rect
          key={run.since}
          x={place(run.since)}
          width={Math.max(0.3, place(run.until) - place(run.since))}
          height={6}
          className={run.outcome && run.outcome !== "succeeded" ? "failed" : ""}
        >
          <title>{told(run)}</title>
        </rect>
      ))}
    </svg>
  );
}

function AwayAgent({ one }: { one: Away }) {
  return (
    <section className="lost-agent">
      <p>
        <strong>{one.id}</strong>{" "}
        <span className="soft">
          {one.resourcePools.join(", ")}, {one.slots} slots, away since
        </span>{" "}
        <Time at={one.goneTime} />: {one.reason}
      </p>
      <ul className="plain">
        {one.runs.map((run) => (
          <li key={`${run.trialId} ${run.since}`}>
            {run.experimentId && run.trialId ? (
              <Link to={`/experiments/${run.experimentId}/trials/${run.trialId}/overview`}>{run.name}</Link>
            ) : (
              run.name
            )}
            : {run.until ? `${run.outcome.replaceAll("_", " ")}, ${run.reason}` : "not heard of yet"}
          </li>
        ))}
        {!one.runs.length && <li className="soft">Nothing ran on it.</li>}
      </ul>
    </section>
  );
}
