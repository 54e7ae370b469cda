import type { Row } from "../../lists/columns";
import { digits, many, number, stateName } from "../../parts/format";
import { State } from "../../ui/state";

export const GROUPS: Record<string, { name: string; of: (row: Row) => string }> = {
  projectId: { name: "project", of: ({ experiment }) => experiment.projectName },
  state: { name: "state", of: ({ experiment }) => stateName(experiment.state) },
  user: { name: "user", of: ({ experiment }) => experiment.username },
  tags: { name: "tag", of: ({ experiment }) => experiment.labels[0] ?? "no tag" },
  searcherType: { name: "searcher", of: ({ experiment }) => experiment.searcherType },
  resourcePool: { name: "pool", of: ({ experiment }) => experiment.resourcePool },
};

const LEAST_HOURS = 0.01;
const STATES = /^[A-Z_]+$/;

/** The best value of the search metric, if all who report one report the same. */
export function bestOf(rows: Row[]): { name: string; value: number } | null {
  const measured = rows.map((row) => row.experiment).filter((experiment) => experiment.bestTrialSearcherMetric !== null);
  const [first] = measured;
  if (
    !first ||
    measured.some(
      (experiment) => experiment.searcherMetric !== first.searcherMetric || experiment.smallerIsBetter !== first.smallerIsBetter,
    )
  )
    return null;
  const values = measured.map((experiment) => experiment.bestTrialSearcherMetric!);
  return { name: first.searcherMetric, value: first.smallerIsBetter ? Math.min(...values) : Math.max(...values) };
}

/** How many experiments, how many of them run, their best value, and what they cost in total. */
export function groupHead(key: string, rows: Row[]) {
  const running = rows.filter((row) => stateName(row.experiment.state) === "RUNNING").length;
  const hours = rows.reduce((sum, row) => sum + row.experiment.slotHours, 0);
  const best = bestOf(rows);
  return (
    <>
      {STATES.test(key) ? <State state={key} /> : <b>{key}</b>}
      <span>
        {many(rows.length, "experiment")}
        {running > 0 && `, ${running} running`}
      </span>
      {best && (
        <span className="ink2" title={`${best.name}: ${best.value}`}>
          best {digits(best.value)}
        </span>
      )}
      <span className="ink3 d-only">{hours < LEAST_HOURS ? "under 0.01" : number(hours, hours < 1 ? 2 : 3)} slot hours</span>
    </>
  );
}
