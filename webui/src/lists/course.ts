/** The history of the searcher's metric of each experiment's best trial, in one request. */

import { useMemo } from "react";

import { query } from "../api/client";
import { useData } from "../api/data";
import type { Trial } from "../api/types";
import type { Row } from "./columns";

const POINTS = 40;
const REST_MS = 2000;
const MOST = 60;

interface Series {
  trials: { trial: Trial; metrics: { group: string; data: { values: Record<string, unknown> }[] }[] }[];
}

export function useCourses(rows: Row[]): Map<number, number[]> {
  const ended = rows.map((row) => row.experiment).filter((experiment) => experiment.bestTrialId !== null);
  const asked = ended.slice(0, MOST);
  const names = [...new Set(asked.map((experiment) => experiment.searcherMetric))];
  const path = `trials/time-series${query({ trialIds: asked.map((experiment) => experiment.bestTrialId), metricNames: names, group: "validation", maxDatapoints: POINTS })}`;
  const answer = useData<Series>(asked.length ? path : null, ["experiments"], true, REST_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the request depends on `rows` alone
  return useMemo(() => {
    const of = new Map(asked.map((experiment) => [experiment.bestTrialId, experiment] as const));
    return new Map(
      (answer.data?.trials ?? []).flatMap(({ trial, metrics }) => {
        const experiment = of.get(trial.id);
        const values = metrics
          .flatMap(({ data }) => data.map((point) => point.values[experiment?.searcherMetric ?? ""]))
          .filter((value) => typeof value === "number");
        return experiment ? [[experiment.id, values] as const] : [];
      }),
    );
  }, [answer.data, rows]);
}
