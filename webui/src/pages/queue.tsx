import { Link } from "react-router";

import { useChange, useData } from "../api/data";
import type { Job } from "../api/types";
import { Card, Empty, Failure, Loaded, State, Time } from "../parts/basics";

export function Queue() {
  const found = useData<{ jobs: Job[] }>("job-queues", ["queue", "experiments", "cluster"]);
  const change = useChange();
  const update = (job: Job, wish: object) =>
    change.mutate({ method: "POST", path: "job-queues", body: { updates: [{ jobId: job.jobId, ...wish }] } });
  return (
    <>
      <h1>Job queue</h1>
      {change.error ? <Failure error={change.error} /> : null}
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
                      <th className="num">Slots</th>
                      <th>Pool</th>
                      <th>Submitted</th>
                      <th>User</th>
                      <th>Waits for</th>
                      <th>
                        <span className="hidden">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {jobs.map((job, at) => (
                      <tr key={job.jobId}>
                        <td className="num">{job.summary.jobsAhead < 0 ? "" : job.summary.jobsAhead}</td>
                        <td>
                          {job.type === "TYPE_EXPERIMENT" ? (
                            <Link to={`/experiments/${job.entityId}/overview`}>{`${job.name} (${job.entityId})`}</Link>
                          ) : (
                            job.name
                          )}
                        </td>
                        <td>
                          <State state={job.summary.state} />
                        </td>
                        <td className="num">
                          <input
                            type="number"
                            min={1}
                            max={99}
                            aria-label={`Priority of ${job.name}`}
                            defaultValue={job.priority}
                            onBlur={(event) => Number(event.target.value) !== job.priority && update(job, { priority: Number(event.target.value) })}
                          />
                        </td>
                        <td className="num">{job.weight}</td>
                        <td className="num">
                          {job.allocatedSlots} / {job.requestedSlots}
                        </td>
                        <td>{job.resourcePool}</td>
                        <td>
                          <Time at={job.submissionTime} />
                        </td>
                        <td>{job.username}</td>
                        <td className="wide">{job.waitsFor}</td>
                        <td>
                          <button type="button" disabled={at === 0} title="Move to the front" onClick={() => update(job, { aheadOf: jobs[0]!.jobId })}>
                            To the front
                          </button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            ) : (
              <Empty>Nothing waits and nothing runs.</Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}
