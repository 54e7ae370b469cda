/** Columns of the table of experiments: what they are called and how they look. */

import type { ReactNode } from "react";

import type { Experiment, Json } from "../api/types";
import { ExperimentLink, Progress, State, Time } from "../parts/basics";
import { duration, number, size } from "../parts/format";

export interface Row {
  experiment: Experiment;
  values: Record<string, Json>;
}
export interface Column {
  id: string;
  label: string;
  kind: "NUMBER" | "TEXT" | "DATE";
  width: number;
  /** Under which heading the picker lists it. */
  of: string;
  cell: (row: Row) => ReactNode;
}

const GENERAL = "General";
const make = (id: string, label: string, kind: Column["kind"], width: number, cell: Column["cell"]): Column => ({
  id,
  label,
  kind,
  width,
  of: GENERAL,
  cell,
});

const tags = ({ experiment: { labels } }: Row) =>
  labels.map((label) => (
    <span className="label" key={label}>
      {label}
    </span>
  ));

const FIXED: Column[] = [
  make("id", "ID", "NUMBER", 70, ({ experiment: { id } }) => <ExperimentLink id={id} />),
  make("name", "Name", "TEXT", 260, ({ experiment: { id, name } }) => <ExperimentLink id={id}>{name}</ExperimentLink>),
  make("description", "Description", "TEXT", 220, ({ experiment: { description } }) => description),
  make("tags", "Tags", "TEXT", 150, tags),
  make("state", "State", "TEXT", 120, ({ experiment: { state, stateReason } }) => <State state={state} why={stateReason} />),
  make("progress", "Progress", "NUMBER", 120, ({ experiment: { progress } }) => <Progress value={progress} />),
  make("numTrials", "Trials", "NUMBER", 80, ({ experiment: { numTrials } }) => number(numTrials)),
  make("searcherType", "Searcher", "TEXT", 130, ({ experiment: { searcherType } }) => searcherType),
  make("searcherMetric", "Metric", "TEXT", 130, ({ experiment: { searcherMetric } }) => searcherMetric),
  make("searcherMetricsVal", "Best", "NUMBER", 100, ({ experiment: { bestTrialSearcherMetric, searcherMetric } }) => (
    <span title={bestTrialSearcherMetric === null ? undefined : `${searcherMetric}: ${bestTrialSearcherMetric}`}>
      {number(bestTrialSearcherMetric)}
    </span>
  )),
  make("startTime", "Started", "DATE", 120, ({ experiment: { startTime } }) => <Time at={startTime} />),
  make("duration", "Duration", "NUMBER", 110, ({ experiment }) => duration(experiment.duration)),
  make("user", "User", "TEXT", 120, ({ experiment: { username } }) => username),
  make("resourcePool", "Pool", "TEXT", 110, ({ experiment: { resourcePool } }) => resourcePool),
  make("forkedFrom", "Forked from", "NUMBER", 110, ({ experiment: { forkedFrom } }) => forkedFrom && <ExperimentLink id={forkedFrom} />),
  make("checkpointCount", "Checkpoints", "NUMBER", 110, ({ experiment: { checkpointCount } }) => number(checkpointCount)),
  make("checkpointSize", "Checkpoint size", "NUMBER", 130, ({ experiment: { checkpointSize } }) => size(checkpointSize)),
  make("archived", "Archived", "TEXT", 90, ({ experiment: { archived } }) => (archived ? "yes" : "")),
];
const BY_ID = new Map(FIXED.map((one) => [one.id, one]));

export const DEFAULT = [
  "id",
  "name",
  "tags",
  "state",
  "progress",
  "numTrials",
  "searcherMetricsVal",
  "searcherType",
  "startTime",
  "duration",
  "user",
  "checkpointSize",
];
export const isFixed = (id: string) => BY_ID.has(id);

const HEADINGS: Record<string, string> = { "hp.": "Hyperparameters", "validation.": "Validation metrics", "training.": "Training metrics" };

/** A column by its id, which may come from an address. */
export function column(id: string): Column {
  const fixed = BY_ID.get(id);
  if (fixed) return fixed;
  const heading = Object.keys(HEADINGS).find((start) => id.startsWith(start));
  const cell = ({ values }: Row) => {
    const value = values[id];
    return <span title={value === null || value === undefined ? undefined : String(value)}>{number(value)}</span>;
  };
  const label = id.startsWith("hp.") ? id.slice(3) : id.replace(/^(validation|metric)\./, "");
  return { id, label, kind: "NUMBER", width: 110, of: heading ? HEADINGS[heading]! : "Other metrics", cell };
}

/** Those that there are besides the ones of other names in the answer of the server. */
export const offered = (names: string[]): Column[] => [...FIXED, ...names.filter((name) => !BY_ID.has(name)).map(column)];

const CSV: Record<string, (one: Experiment) => unknown> = {
  tags: (one) => one.labels.join(", "),
  user: (one) => one.username,
  state: (one) => one.state.replace("STATE_", ""),
  searcherMetricsVal: (one) => one.bestTrialSearcherMetric,
};

/** A cell's full value, for files. */
export const plain = (id: string, { experiment, values }: Row): unknown =>
  CSV[id]?.(experiment) ?? (id in values ? values[id] : (experiment as unknown as Record<string, unknown>)[id]);
