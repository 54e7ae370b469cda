import { useMemo } from "react";

import type { Row } from "../../lists/columns";
import { duration, stateName } from "../../parts/format";
import { State } from "../../ui/state";

export const GROUPS: Record<string, { name: string; of: (row: Row) => string }> = {
  projectId: { name: "project", of: ({ experiment }) => experiment.projectName },
  state: { name: "state", of: ({ experiment }) => stateName(experiment.state) },
  user: { name: "user", of: ({ experiment }) => experiment.username },
  tags: { name: "tag", of: ({ experiment }) => experiment.labels[0] ?? "no tag" },
  searcherType: { name: "searcher", of: ({ experiment }) => experiment.searcherType },
  resourcePool: { name: "pool", of: ({ experiment }) => experiment.resourcePool },
};

const STATES = /^[A-Z_]+$/;

/** How many, how many of them run, and how long they took in all. */
export function groupHead(key: string, rows: Row[]) {
  const running = rows.filter((row) => stateName(row.experiment.state) === "RUNNING").length;
  const ran = rows.reduce((sum, row) => sum + row.experiment.duration, 0);
  return (
    <>
      {STATES.test(key) ? <State state={key} /> : <b>{key}</b>}
      <span>
        {rows.length === 1 ? "1 experiment" : `${rows.length} experiments`}
        {running > 0 && `, ${running} running`}
      </span>
      <span className="ink3">ran {duration(ran)}</span>
    </>
  );
}

/** The least and the greatest best value by metric; null without heat. */
export function useHeat(rows: Row[] | null): Map<string, [number, number]> | null {
  return useMemo(() => {
    if (!rows) return null;
    const spans = new Map<string, [number, number]>();
    for (const { experiment: one } of rows) {
      const value = one.bestTrialSearcherMetric;
      if (value === null || !Number.isFinite(value)) continue;
      const [low, high] = spans.get(one.searcherMetric) ?? [value, value];
      spans.set(one.searcherMetric, [Math.min(low, value), Math.max(high, value)]);
    }
    return spans;
  }, [rows]);
}

export const heatOf = (spans: Map<string, [number, number]>) => (row: Row) => {
  const { bestTrialSearcherMetric: value, searcherMetric } = row.experiment;
  const span = spans.get(searcherMetric);
  return value === null || !span || span[0] === span[1] ? null : (value - span[0]) / (span[1] - span[0]);
};
