/** The state of jobs in the queue, in words. */

import type { Job } from "../../api/types";
import { clock, duration } from "../../parts/format";

export interface Pool {
  name: string;
  schedulerType: string;
  stats: { queuedCount: number; scheduledCount: number };
}

/** Path of each kind of job in the REST API. */
export const NOUNS: Record<string, string> = {
  TYPE_EXPERIMENT: "experiments",
  TYPE_COMMAND: "commands",
  TYPE_TENSORBOARD: "tensorboards",
  TYPE_NOTEBOOK: "notebooks",
  TYPE_SHELL: "shells",
};

export const isWaiting = (job: Job) => job.summary.state === "STATE_QUEUED";
export const called = (job: Job) => `${job.name} (${job.entityId})`;
export const isExperiment = (job: Job) => job.type === "TYPE_EXPERIMENT";
export const pageOf = (job: Job) =>
  isExperiment(job) ? `/experiments/${job.entityId}/overview` : `/${NOUNS[job.type] ?? "tasks"}/${job.entityId}/logs`;

/** A job that can start has started within this time. */
const PLACED_MS = 10_000;

/** The moment this many seconds from now. */
function about(seconds: number, now: number): string {
  if (seconds < 1) return "now";
  return seconds < 60 ? "within a minute" : `about ${clock(now + seconds * 1000, now)}`;
}

/** Whether enough slots are free for the job but it has not started: they are not on an agent that it fits. */
export const isStuck = (job: Job, now = Date.now()) =>
  job.startsIn !== null && job.startsIn < 1 && now - Date.parse(job.submissionTime) > PLACED_MS;

/** When a waiting job would start. */
export function startsAt(job: Job, now = Date.now()): string {
  if (!job.canStart) return "never as it is";
  if (isStuck(job, now)) return "when slots fit";
  return job.startsIn === null ? "not known yet" : about(job.startsIn, now);
}

/** What a running job will do. */
export function will(job: Job): string {
  if (job.endsIn !== null) return job.endsIn < 1 ? "ends now" : `ends in about ${duration(Math.ceil(job.endsIn / 60) * 60)}`;
  return job.isPreemptible ? "end not known yet" : "runs until it is ended";
}

export interface Preview {
  starts: string[];
  leaves: string[];
  startsIn: number | null;
}

/** The effect of a move, in one sentence; `names` holds the names of jobs by id. */
export function consequence(job: Job, preview: Preview, names: Map<string, string>, now = Date.now()): string {
  const leaving = preview.leaves.map((id) => names.get(id) ?? id);
  const shown = leaving.slice(0, 3).join(", ") + (leaving.length > 3 ? ` and ${leaving.length - 3} more` : "");
  const cost = leaving.length
    ? `${shown} ${leaving.length === 1 ? "is" : "are"} asked to save a checkpoint and stop.`
    : "Nothing is interrupted.";
  const then = preview.startsIn === null ? null : about(preview.startsIn, now);
  const before = startsAt(job, now);
  const start = preview.starts.includes(job.jobId)
    ? "It starts at once."
    : then === null
      ? ""
      : then === before || before === "not known yet"
        ? `It starts ${then}.`
        : `It starts ${then} instead of ${before.replace("about ", "")}.`;
  return [cost, start].filter(Boolean).join(" ");
}
