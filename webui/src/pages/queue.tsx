import { useState } from "react";
import { Link, NavLink, useParams } from "react-router";

import { query } from "../api/client";
import { useChange, useData } from "../api/data";
import type { Job } from "../api/types";
import { type Asked, Card, Confirm, Empty, Failure, Loaded, State, Time } from "../parts/basics";

/** Jobs of all pools, or of one; every waiting one says what it waits for. */
export function Queue() {
  const pool = useParams().pool;
  const found = useData<{ jobs: Job[] }>(`job-queues${query({ resourcePool: pool })}`, ["queue", "experiments", "cluster"]);
  const pools = useData<{
    resourcePools: { name: string; schedulerType: string; stats: { queuedCount: number; scheduledCount: number } }[];
  }>("resource-pools", ["queue", "cluster"]);
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChange();
  const update = (job: Job, wish: object) =>
    change.mutate({ method: "POST", path: "job-queues", body: { updates: [{ jobId: job.jobId, ...wish }] } });
  const scheduler = (name: string) => pools.data?.resourcePools.find((one) => one.name === name)?.schedulerType ?? "";
  return (
    <>
      <h1>Job queue</h1>
      {pools.data && pools.data.resourcePools.length > 0 && (
        <nav className="tabs" aria-label="Pools">
          <NavLink to="/jobs" end>
            All pools
          </NavLink>
          {pools.data.resourcePools.map((one) => (
            <NavLink key={one.name} to={`/resourcepool/${encodeURIComponent(one.name)}`}>
              {one.name} ({one.stats.scheduledCount} active, {one.stats.queuedCount} queued)
            </NavLink>
          ))}
        </nav>
      )}
      {change.error ? <Failure error={change.error} /> : null}
      <Confirm asked={asked} onClose={() => setAsked(null)} />
      <Card>
        <Loaded found={found}>
          {({ jobs }) =>
            jobs.length ? (
              <div className="scroll">
                <table aria-label="Jobs">
                  <thead>
                    <tr>
                      <th className="num">Ahead</th>
                      <th>Job</th>
                      <th>State</th>
                      <th className="num">Priority</th>
                      <th className="num">Weight</th>
                      <th className="num">Slots held / wanted</th>
                      <th>Pool</th>
                      <th>Submitted</th>
                      <th>User</th>
                      <th>Preemptible</th>
                      <th>Waits for</th>
                      <th>
                        <span className="hidden">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {jobs.map((job, at) => (
                      <Row
                        key={job.jobId}
                        job={job}
                        scheduler={scheduler(job.resourcePool)}
                        before={neighbour(jobs, at, -1)}
                        after={neighbour(jobs, at, 1)}
                        first={jobs.find((one) => one.resourcePool === job.resourcePool)!}
                        onUpdate={(wish) => update(job, wish)}
                        onEnd={(verb) => setAsked(ending(job, verb, (path) => change.mutate({ method: "POST", path })))}
                      />
                    ))}
                  </tbody>
                </table>
              </div>
            ) : (
              <Empty command="det experiment create config.yaml .">Nothing waits and nothing runs.</Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}

/** The next job of the same pool in that direction. */
function neighbour(jobs: Job[], at: number, by: number): Job | undefined {
  for (let other = at + by; jobs[other]; other += by) if (jobs[other]!.resourcePool === jobs[at]!.resourcePool) return jobs[other];
  return undefined;
}

const NOUNS: Record<string, string> = { TYPE_EXPERIMENT: "experiments", TYPE_COMMAND: "commands", TYPE_TENSORBOARD: "tensorboards" };

function ending(job: Job, verb: "cancel" | "kill", act: (path: string) => void): Asked {
  const lost = verb === "kill" ? "What it has not saved is lost." : "Its trials save their state, then they leave.";
  const text = job.allocatedSlots ? `It holds ${job.allocatedSlots} slots. ${lost}` : "It waits, so nothing of it is lost but its place.";
  return {
    title: `${verb === "kill" ? "Kill" : "Cancel"} ${job.name}?`,
    text,
    verb: verb === "kill" ? "Kill" : "Cancel",
    act: () => act(`${NOUNS[job.type]}/${job.entityId}/${verb}`),
  };
}

function Row({
  job,
  scheduler,
  before,
  after,
  first,
  onUpdate,
  onEnd,
}: {
  job: Job;
  scheduler: string;
  before?: Job;
  after?: Job;
  first: Job;
  onUpdate: (wish: object) => void;
  onEnd: (verb: "cancel" | "kill") => void;
}) {
  const fair = scheduler.endsWith("FAIR_SHARE");
  const unordered = fair ? "Fair share has no order: change the weight" : "";
  return (
    <tr>
      <td className="num">{job.summary.jobsAhead < 0 ? "" : job.summary.jobsAhead}</td>
      <td>
        {job.type === "TYPE_EXPERIMENT" ? (
          <Link to={`/experiments/${job.entityId}/overview`}>{`${job.name} (${job.entityId})`}</Link>
        ) : (
          <Link to={`/${NOUNS[job.type]}/${job.entityId}/logs`}>{job.name}</Link>
        )}
      </td>
      <td>
        <State state={job.summary.state} />
      </td>
      <td className="num">
        <Amount
          label={`Priority of ${job.name} (${job.entityId})`}
          value={job.priority}
          min={1}
          max={99}
          step={1}
          onSet={(priority) => onUpdate({ priority })}
        />
      </td>
      <td className="num">
        <Amount
          label={`Weight of ${job.name} (${job.entityId})`}
          value={job.weight}
          min={0.01}
          step={0.5}
          onSet={(weight) => onUpdate({ weight })}
        />
      </td>
      <td className="num">
        {job.allocatedSlots} / {job.requestedSlots}
      </td>
      <td>{job.resourcePool}</td>
      <td>
        <Time at={job.submissionTime} />
      </td>
      <td>{job.username}</td>
      <td>{job.isPreemptible ? "yes" : "no"}</td>
      <td className="wide">{job.waitsFor}</td>
      <td>
        <span className="actions">
          <button
            type="button"
            disabled={!before || fair}
            title={unordered || "To the front"}
            aria-label={`Move ${job.name} (${job.entityId}) to the front`}
            onClick={() => onUpdate({ aheadOf: first.jobId })}
          >
            ⤒
          </button>
          <button
            type="button"
            disabled={!before || fair}
            title={unordered}
            aria-label={`Move ${job.name} (${job.entityId}) ahead`}
            onClick={() => onUpdate({ aheadOf: before!.jobId })}
          >
            ↑
          </button>
          <button
            type="button"
            disabled={!after || fair}
            title={unordered}
            aria-label={`Move ${job.name} (${job.entityId}) behind`}
            onClick={() => onUpdate({ behindOf: after!.jobId })}
          >
            ↓
          </button>
          {job.type === "TYPE_EXPERIMENT" && (
            <button type="button" onClick={() => onEnd("cancel")}>
              Cancel
            </button>
          )}
          <button type="button" onClick={() => onEnd("kill")}>
            Kill
          </button>
        </span>
      </td>
    </tr>
  );
}

/** A number that is set when one leaves the field or presses Enter. */
function Amount({
  label,
  value,
  onSet,
  ...limits
}: {
  label: string;
  value: number;
  min: number;
  max?: number;
  step: number;
  onSet: (value: number) => void;
}) {
  return (
    <input
      key={value}
      type="number"
      aria-label={label}
      defaultValue={value}
      {...limits}
      step="any"
      onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
      onBlur={(event) => {
        const next = Number(event.target.value);
        if (event.target.value && next !== value) onSet(next);
      }}
    />
  );
}
