import type { Checkpoint } from "../../api/types";
import { measured } from "../../parts/format";

/** The metric of the search at a checkpoint, as text. One that is not finite ranks nothing and is only among all metrics. */
export const metricAt = ({ training }: Pick<Checkpoint, "training">, name: string): string =>
  measured(training?.searcherMetric ?? training?.validationMetrics?.avgMetrics[name]);
