/** The names of the metrics. */

import { useQuery } from "@tanstack/react-query";

import { query } from "../api/client";
import { first, useAgain } from "../api/data";
import type { Trial } from "../api/types";

export interface Name {
  group: string;
  name: string;
}

const REST_MS = 2000;
const GROUPS: Record<string, string> = { avg_metrics: "training", validation_metrics: "validation" };

/** Names of the metrics of experiments; refetched as they report. */
export function useNames(experiments: number[], topics: string[]) {
  const answer = useQuery({
    queryKey: ["names", experiments],
    queryFn: async () => {
      const answer = await first<{ metricNames: Name[] }>(`experiments/metrics-stream/metric-names${query({ ids: experiments })}`);
      return answer?.metricNames ?? [];
    },
    enabled: experiments.length > 0,
  });
  useAgain(topics, [["names", experiments]], REST_MS);
  return answer;
}

/** Numeric metrics of one trial. */
export const namesOf = (trial: Trial): Name[] =>
  Object.entries(trial.summaryMetrics ?? {}).flatMap(([group, metrics]) =>
    Object.entries(metrics)
      .filter(([, summary]) => summary.type === "number")
      .map(([name]) => ({ group: GROUPS[group] ?? group, name })),
  );

export const isProfile = (group: string) => group.startsWith("profile.");

/** What the worker samples has no batches: its steps are seconds since the run began, and each run starts at zero. */
export const isTimed = (groups: string[]) => groups.length > 0 && groups.every((group) => group === "profile.process");
