/** When a trial was validated last, in a few words. */

import type { Trial } from "../../api/types";
import { ago, isOver } from "../../parts/format";

type Validated = Pick<Trial, "latestValidation" | "state" | "summaryMetrics">;

/** A validation counts only with the metric of the search; one that lacks it is not "nothing". */
export function lastValidated(trial: Validated, metric: string): string {
  if (trial.latestValidation) return ago(trial.latestValidation.endTime);
  if (Object.keys(trial.summaryMetrics?.validation_metrics ?? {}).length) return `no validation reported ${metric}`;
  return isOver(trial.state) ? "nothing was validated" : "no validation yet";
}
