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

/** How many experiments, how many of them run, and how long they took in total. */
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
