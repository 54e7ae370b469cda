import type { Experiment } from "../../api/types";
import { duration, isOver, roughly, stateName } from "../../parts/format";

const LEAST_PROGRESS = 0.01;

/** The time left, or the time it has taken, short enough for a column. */
export function timeOf(one: Pick<Experiment, "state" | "progress" | "runningTime" | "duration">): string {
  const state = stateName(one.state);
  const ran = one.runningTime ? `ran ${duration(one.runningTime)}` : "";
  if (isOver(one.state) || state === "PAUSED") return ran || "never ran";
  if (state !== "RUNNING") return ran || `waits ${roughly(one.duration)}`;
  if (!one.runningTime) return "just started";
  if (one.progress && one.progress > LEAST_PROGRESS) return `${roughly((one.runningTime * (1 - one.progress)) / one.progress)} left`;
  return `runs for ${roughly(one.runningTime)}`;
}
