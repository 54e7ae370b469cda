/** Which metrics there are. */

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

/** Of experiments; asked for again as they report. */
export function useNames(experiments: number[], topics: string[]) {
  const found = useQuery({
    queryKey: ["names", experiments],
    queryFn: async () => {
      const told = await first<{ metricNames: Name[] }>(`experiments/metrics-stream/metric-names${query({ ids: experiments })}`);
      return told?.metricNames ?? [];
    },
    enabled: experiments.length > 0,
  });
  useAgain(topics, [["names", experiments]], REST_MS);
  return found;
}

/** Of one trial, numbers only. */
export const namesOf = (trial: Trial): Name[] =>
  Object.entries(trial.summaryMetrics ?? {}).flatMap(([group, metrics]) =>
    Object.entries(metrics)
      .filter(([, one]) => one.type === "number")
      .map(([name]) => ({ group: GROUPS[group] ?? group, name })),
  );

export const isProfile = (group: string) => group.startsWith("profile.");

/** What the worker samples has no batches: its steps are seconds since the run began, which begin anew with each run. */
export const isTimed = (groups: string[]) => groups.length > 0 && groups.every((one) => one === "profile.process");
