import type { Experiment } from "../../api/types";
import { isOver, ranFor, roughly, stateName } from "../../parts/format";

const LEAST_PROGRESS = 0.01;

/** The time left, or the time it has taken, short enough for a column. */
export function timeOf(pick: Pick<Experiment, "state" | "progress" | "runningTime" | "slotHours" | "duration">): string {
  const state = stateName(pick.state);
  const lasted = ranFor(pick);
  const ran = lasted && `ran ${lasted}`;
  if (isOver(pick.state) || state === "PAUSED") return ran || "never ran";
  if (state !== "RUNNING") return ran || `waits ${roughly(pick.duration)}`;
  if (!pick.runningTime) return "just started";
  if (pick.progress && pick.progress > LEAST_PROGRESS) return `${roughly((pick.runningTime * (1 - pick.progress)) / pick.progress)} left`;
  return `runs for ${roughly(pick.runningTime)}`;
}
