import { useChange, useData } from "../api/data";
import type { Agent, Slot } from "../api/types";
import { Card, Copyable, Empty, Failure, Loaded, Time } from "../parts/basics";

interface Tasks {
  allocationIdToSummary: Record<string, { name: string; taskId: string; resources: { containerId: string }[] }>;
}
interface Pool {
  name: string;
  description: string;
  numAgents: number;
  slotsAvailable: number;
  slotsUsed: number;
  schedulerType: string;
  schedulerFittingPolicy: string;
}

export function Cluster() {
  const agents = useData<{ agents: Agent[] }>("agents", ["cluster"]);
  const tasks = useData<Tasks>("tasks", ["cluster"]);
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["cluster", "queue"]);
  const change = useChange();
  const users = new Map(
    Object.values(tasks.data?.allocationIdToSummary ?? {}).flatMap((one) => one.resources.map((part) => [part.containerId, one.name] as const)),
  );
  return (
    <>
      <h1>Cluster</h1>
      <Card title="Resource pools">
        <Loaded found={pools}>
          {({ resourcePools }) => (
            <div className="scroll">
              <table>
                <thead>
                  <tr>
                    <th>Pool</th>
                    <th>Scheduler</th>
                    <th>Fitting</th>
                    <th className="num">Agents</th>
                    <th className="num">Slots used</th>
                  </tr>
                </thead>
                <tbody>
                  {resourcePools.map((pool) => (
                    <tr key={pool.name}>
                      <td title={pool.description}>{pool.name}</td>
                      <td>{pool.schedulerType.replace("SCHEDULER_TYPE_", "").toLowerCase().replace("_", " ")}</td>
                      <td>{pool.schedulerFittingPolicy.replace("FITTING_POLICY_", "").toLowerCase()}</td>
                      <td className="num">{pool.numAgents}</td>
                      <td className="num">
                        {pool.slotsUsed} / {pool.slotsAvailable}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Loaded>
      </Card>
      {change.error ? <Failure error={change.error} /> : null}
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
                          <button type="button" onClick={() => change.mutate({ method: "POST", path: `agents/${agent.id}/disable`, body: { drain: true } })}>
                            Drain
                          </button>
                          <button type="button" onClick={() => change.mutate({ method: "POST", path: `agents/${agent.id}/disable` })}>
                            Disable
                          </button>
                        </>
                      ) : (
                        <button type="button" onClick={() => change.mutate({ method: "POST", path: `agents/${agent.id}/enable` })}>
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
                      <SlotBox key={slot.id} slot={slot} user={slot.container ? users.get(slot.container.id) : undefined} />
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
      <p className="soft">
        What was decided, in words: <Copyable text="det master logs --follow" />
      </p>
    </>
  );
}

function SlotBox({ slot, user }: { slot: Slot; user?: string }) {
  const kind = !slot.enabled ? "off" : slot.container ? "busy" : "free";
  const words = kind === "off" ? "disabled" : kind === "busy" ? (user ?? "in use") : "free";
  return (
    <li className={kind} title={`${slot.device.type.replace("TYPE_", "")} ${slot.device.brand}`}>
      <span className="num">{slot.id}</span> {words}
    </li>
  );
}
