/** Columns of the table of experiments: their titles and their cells. */

import type { Experiment, Json } from "../api/types";
import { digits, duration, number, ranFor, size, shownState, stateName } from "../parts/format";
import type { Screen } from "../ui/media";
import { Progress } from "../ui/meter";
import { Spark } from "../ui/spark";
import { State } from "../ui/state";
import type { Column as TableColumn } from "../ui/table";
import { NUMBER_PX } from "../ui/table/widths";
import { Avatar, Cut, Tag, Time } from "../ui/text";
import { CellLink } from "../ui/within";

export interface Row {
  experiment: Experiment;
  /** Values of columns requested by name; missing if none were. */
  values?: Record<string, Json>;
  /** History of the experiment's metric, if requested. */
  course?: number[];
}
export type Column = TableColumn<Row>;

const GENERAL = "General";
/** The searcher's metric of the best trial. */
export const BEST = "searcherMetricsVal";
/** Room for a number, and for the metric before it where the name is short. */
const NAMED_NUMBER_PX = NUMBER_PX + 44;
/** Letters of two tags that share a line, and of those with the number of further tags behind them. */
const [TAG_LETTERS, TAG_LETTERS_MORE] = [10, 7];

const make = (
  id: string,
  head: string,
  width: number | undefined,
  cell: (experiment: Experiment, row: Row) => React.ReactNode,
  more: Partial<Column> = {},
): Column => ({
  id,
  head,
  width,
  folder: GENERAL,
  cell: (row) => cell(row.experiment, row),
  ...more,
});

/** As many labels as fit, at least one. */
function fitting(labels: string[]): string[] {
  const [first = "", second] = labels;
  const most = labels.length > 2 ? TAG_LETTERS_MORE : TAG_LETTERS;
  return labels.slice(0, second && first.length + second.length <= most ? 2 : 1);
}

const tags = ({ labels }: Experiment) => {
  const shown = fitting(labels);
  return (
    <span className="tags-of" title={labels.join(", ")}>
      {shown.map((label) => (
        <Tag key={label}>{label}</Tag>
      ))}
      {labels.length > shown.length && <span className="sub">+{labels.length - shown.length}</span>}
    </span>
  );
};

/** Progress, or the state in words. */
function progress(experiment: Experiment) {
  const state = stateName(experiment.state);
  // Its search is over, whether or not its trials trained as far as they were to.
  if (state === "COMPLETED") return <span className="ink3">done</span>;
  if (experiment.progress === null || experiment.progress === undefined) return <span className="ink3">–</span>;
  if (experiment.progress === 0 && !experiment.runningTime) return <span className="ink3">not begun</span>;
  return <Progress value={experiment.progress} state={experiment.state} />;
}

/** How long it ran; the rest of the time since its submission is in the tooltip. */
export function Ran({ of }: { of: Experiment }) {
  return <span title={idle(of.runningTime, of.duration)}>{ranFor(of) || <span className="ink3">–</span>}</span>;
}

/** The time in which nothing ran, in words. Half a minute is spent by starting and stopping. */
const NOTABLE_S = 30;
const idle = (ran: number, lasted: number) =>
  lasted - ran < NOTABLE_S ? undefined : `${duration(lasted)} since it was submitted, ${duration(lasted - ran)} of it queued or paused`;

const num = { num: true };
const FIXED: Column[] = [
  make("id", "ID", 56, ({ id }) => <span className="id">{id}</span>, { num: true, least: 48 }),
  make(
    "name",
    "Name",
    undefined,
    ({ id, name }) => (
      <CellLink className="cut" to={`/experiments/${id}/overview`} title={name}>
        {name}
      </CellLink>
    ),
    { name: true },
  ),
  make("description", "Description", 220, ({ description }) => <Cut>{description}</Cut>, { least: 120, most: 360 }),
  make("tags", "Tags", 128, tags, { least: 92 }),
  make("state", "State", 120, (experiment) => <State state={shownState(experiment)} why={experiment.stateReason} />, {
    small: true,
    under: true,
    least: 116,
  }),
  make("progress", "Progress", 108, progress),
  make("numTrials", "Trials", 60, ({ numTrials }) => number(numTrials), { num: true, least: 56 }),
  make(
    "course",
    "Course",
    86,
    ({ state, searcherMetric }, { course = [] }) => (
      <Spark values={course} state={stateName(state)} title={`${searcherMetric} from ${number(course[0])} to ${number(course.at(-1))}`} />
    ),
    { sort: false },
  ),
  make(
    BEST,
    "Best",
    150,
    ({ bestTrialSearcherMetric, searcherMetric }) =>
      bestTrialSearcherMetric === null ? (
        "–"
      ) : (
        <span className="of-metric" title={`${searcherMetric}: ${bestTrialSearcherMetric}`}>
          <span className="sub cut">{searcherMetric}</span> <span>{digits(bestTrialSearcherMetric)}</span>
        </span>
      ),
    { ...num, small: true, least: NAMED_NUMBER_PX, most: 200 },
  ),
  make("searcherType", "Searcher", 120, ({ searcherType }) => <Cut>{searcherType}</Cut>, { least: 84, most: 150 }),
  make(
    "searcherMetric",
    "Metric",
    104,
    ({ searcherMetric }) => (
      <span className="cut ink3 sm" title={searcherMetric}>
        {searcherMetric}
      </span>
    ),
    { least: 84, most: 200 },
  ),
  make("startTime", "Started", 104, ({ startTime }) => <Time at={startTime} />, { least: 94 }),
  make("runningTime", "Ran", 92, (experiment) => <Ran of={experiment} />, num),
  make("duration", "Since submission", 130, ({ duration: lasted }) => duration(lasted), num),
  make("slotHours", "Slot hours", 90, ({ slotHours }) => number(slotHours, 3), num),
  make("user", "By", 48, ({ username }) => <Avatar name={username} small />),
  make("resourcePool", "Pool", 100, ({ resourcePool }) => <Cut>{resourcePool}</Cut>, { least: 76, most: 160 }),
  make(
    "projectId",
    "Project",
    130,
    ({ projectId, projectName }) => (
      <CellLink className="cut ink2" to={`/projects/${projectId}/experiments`} title={projectName}>
        {projectName}
      </CellLink>
    ),
    { least: 92, most: 220 },
  ),
  make(
    "forkedFrom",
    "Forked from",
    100,
    ({ forkedFrom }) => forkedFrom && <CellLink to={`/experiments/${forkedFrom}/overview`}>{forkedFrom}</CellLink>,
    num,
  ),
  make("checkpointCount", "Checkpoints", 100, ({ checkpointCount }) => number(checkpointCount), num),
  make("checkpointSize", "Checkpoint size", 110, ({ checkpointSize }) => size(checkpointSize), num),
  make("archived", "Archived", 80, ({ archived }) => (archived ? "yes" : "")),
];
const BY_ID = new Map(FIXED.map((column) => [column.id, column]));

/** What is compared comes first: a narrow list scrolls sideways to the rest. */
const DEFAULT = ["id", "name", "state", "progress", BEST, "course", "numTrials", "tags", "startTime", "runningTime", "user"];
/** With what there is room for on a wide screen, behind the column that it belongs to. */
const DEFAULT_WIDE = DEFAULT.flatMap((id) => (id === "numTrials" ? [id, "searcherType"] : [id]));
const DEFAULT_SMALL = DEFAULT.filter((id) => id !== "startTime");
/** The columns of a list for which nobody chose any. */
export const defaultIn = (screen: Screen) => (screen === "wide" ? DEFAULT_WIDE : screen === "small" ? DEFAULT_SMALL : DEFAULT);
export const isFixed = (id: string) => BY_ID.has(id);

const HEADINGS: Record<string, string> = { "hp.": "Hyperparameters", "validation.": "Validation metrics", "training.": "Training metrics" };

/** A column by id; the id may come from an address. */
export function column(id: string): Column {
  const fixed = BY_ID.get(id);
  if (fixed) return fixed;
  const heading = Object.keys(HEADINGS).find((start) => id.startsWith(start));
  const cell = ({ values }: Row) => {
    const value = values?.[id];
    return <Cut title={value === null || value === undefined ? undefined : String(value)}>{number(value, 4)}</Cut>;
  };
  const head = id.startsWith("hp.") ? id.slice(3) : id.replace(/^(validation|metric)\./, "");
  return { id, head, num: true, width: 104, least: NUMBER_PX, folder: heading ? HEADINGS[heading]! : "Other metrics", cell };
}

/** The columns on offer: the fixed ones, plus other names from the server's answer. */
export const offered = (names: string[]): Column[] => [...FIXED, ...names.filter((name) => !BY_ID.has(name)).map(column)];

const CSV: Record<string, (experiment: Experiment) => unknown> = {
  tags: (experiment) => experiment.labels.join(", "),
  user: (experiment) => experiment.username,
  state: (experiment) => experiment.state.replace("STATE_", ""),
  searcherMetricsVal: (experiment) => experiment.bestTrialSearcherMetric,
};

/** The full value of a cell, for files. */
export const plain = (id: string, { experiment, values }: Row): unknown =>
  CSV[id]?.(experiment) ?? (values && id in values ? values[id] : (experiment as unknown as Record<string, unknown>)[id]);
