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
  const told = rows.map((row) => row.experiment).filter((one) => one.bestTrialId !== null);
  const asked = told.slice(0, MOST);
  const names = [...new Set(asked.map((one) => one.searcherMetric))];
  const path = `trials/time-series${query({ trialIds: asked.map((one) => one.bestTrialId), metricNames: names, group: "validation", maxDatapoints: POINTS })}`;
  const found = useData<Series>(asked.length ? path : null, ["experiments"], true, REST_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the request depends on `rows` alone
  return useMemo(() => {
    const of = new Map(asked.map((one) => [one.bestTrialId, one] as const));
    return new Map(
      (found.data?.trials ?? []).flatMap(({ trial, metrics }) => {
        const one = of.get(trial.id);
        const values = metrics
          .flatMap(({ data }) => data.map((point) => point.values[one?.searcherMetric ?? ""]))
          .filter((value) => typeof value === "number");
        return one ? [[one.id, values] as const] : [];
      }),
    );
  }, [found.data, rows]);
}
