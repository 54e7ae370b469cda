/** The chart of one metric: all groups of that name together, for one or several trials. */

import { type ReactNode, useMemo } from "react";
import { useNavigate } from "react-router";

import type { Trial } from "../api/types";
import { Failure } from "../ui/status";
import { Chart } from "./chart";
import { grouped } from "./grouped";
import { type Known, type Line, nearest, toLines } from "./lines";
import { timedAxis, useView, type View, writeRange } from "./link";
import type { Looks } from "./looks";
import { isProfile } from "./names";
import type { Mark } from "./plot";
import type { Rule } from "./rules";
import { type Part, useSeries, widthFor } from "./series";
import { titleOf } from "./titles";

/** A trial as charts know it. */
export interface Curve extends Known {
  experimentId: number;
  best: { uuid: string; batches: number } | null;
}

export const curveOf = (trial: Trial, more: Partial<Curve> = {}): Curve => ({
  id: trial.id,
  experimentId: trial.experimentId,
  startTime: trial.startTime,
  best: trial.bestCheckpoint ? { uuid: trial.bestCheckpoint.uuid, batches: trial.bestCheckpoint.totalBatches } : null,
  end: trial.state === "STATE_ERROR" ? "failed" : "",
  ...more,
});

/** Returns the same array until something in it changes, since charts redraw for a new one. */
export function useCurves(trials: Trial[], more?: (trial: Trial) => Partial<Curve>): Curve[] {
  const made = trials.map((trial) => curveOf(trial, more?.(trial)));
  const key = JSON.stringify(made);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the result depends on the serialized content alone
  return useMemo(() => made, [key]);
}

/** Settings that all charts of a page share. */
export interface Shared {
  trials: Curve[];
  looks?: Looks;
  /** Trials that are not drawn. */
  hidden?: ReadonlySet<number>;
  topics: string[];
  /** Group of every trial, if each group is drawn as its mean. */
  together?: Looks | null;
  /** Vertical lines: where the search judged, where a trial restarted. */
  rules?: Rule[];
}

const SERVER_X: Record<string, string> = { since: "time" };
const WIDEST = 5000;

/** The part to request from the server. With time since the start, the range covers that of every trial. */
function partOf(trials: Curve[], view: View, group: string): Part {
  const part: Part = { trials: trials.map((trial) => trial.id), x: SERVER_X[view.x] ?? view.x, width: widthFor(trials.length) };
  if (group) part.group = group;
  if (!view.zoom) return part;
  const starts = view.x === "since" ? trials.map((trial) => Date.parse(trial.startTime) / 1000) : [0];
  const [from, to] = [view.zoom[0] + Math.min(...starts), view.zoom[1] + Math.max(...starts)];
  const finer = (to - from) / (view.zoom[1] - view.zoom[0]);
  return { ...part, from, to, width: Math.min(WIDEST, Math.ceil(part.width * finer)) };
}

const MARKED = 12;

/** Marks of the best checkpoints; with several trials, only that of the first one, which is the best. */
function marksOf(lines: Line[], trials: Curve[], open: (trial: Curve) => void): Mark[] {
  const some = trials.length > MARKED ? trials.slice(0, 1) : trials;
  return some.flatMap((trial) => {
    const line = trial.best && lines.find((line) => line.trial === trial.id && line.group === "validation");
    const at = line ? nearest(line.batches, trial.best!.batches) : -1;
    const y = line?.ys[at];
    if (!line || typeof y !== "number") return [];
    return [
      { trial: trial.id, x: line.xs[at]!, y, label: `best checkpoint of trial ${trial.id}: ${trial.best!.uuid}`, open: () => open(trial) },
    ];
  });
}

export const placeOf = (trial: Curve) => `/experiments/${trial.experimentId}/trials/${trial.id}`;
const NONE: ReadonlySet<number> = new Set();

export function MetricChart({
  metric,
  note,
  group = "",
  searched = false,
  smaller = null,
  height,
  below,
  profile = false,
  timed = false,
  ...shared
}: Shared & {
  metric: string;
  note?: ReactNode;
  group?: string;
  /** This is the searcher's metric. */
  searched?: boolean;
  smaller?: boolean | null;
  profile?: boolean;
  /** It is known by time only; see `isTimed`. */
  timed?: boolean;
  height?: number;
  below?: ReactNode;
}) {
  const { trials, looks, hidden = NONE, topics, together, rules } = shared;
  const page = useView();
  const x = timed ? timedAxis(page.x) : page.x;
  const view = { ...page, x, zoom: x === page.x ? page.zoom : null };
  const navigate = useNavigate();
  const answer = useSeries(partOf(trials, view, group), metric, topics);
  const { smooth } = view;
  const lines = useMemo(() => {
    const shown = (answer.data ?? []).filter((series) => isProfile(series.group) === profile && !hidden.has(series.trialId));
    const made = toLines(shown, trials, { weight: smooth, sinceStart: x === "since" }, looks);
    return together ? grouped(made, (trial) => nameOf(together, trial)) : made;
  }, [answer.data, trials, x, smooth, profile, looks, hidden, together]);
  const marks = useMemo(
    () =>
      searched && !together
        ? marksOf(lines, trials, (curve) => navigate(`${placeOf(curve)}/checkpoints?checkpoint=${curve.best!.uuid}`))
        : [],
    [lines, trials, searched, together, navigate],
  );
  // Vertical lines are labelled only once, on the chart of the searcher's metric.
  const upright = useMemo(() => (searched ? rules : rules?.map((rule) => ({ ...rule, label: "" }))), [searched, rules]);
  const open = (id: number) => {
    const trial = trials.find((trial) => trial.id === id);
    if (trial) navigate(`${placeOf(trial)}/overview`);
  };
  if (answer.error && !answer.data) return <Failure error={answer.error} />;
  return (
    <Chart
      title={metric}
      called={titleOf(metric, profile).text}
      note={note}
      lines={lines}
      axis={view.x}
      log={view.log}
      band={view.band || Boolean(together)}
      marks={marks}
      rules={upright}
      zoom={view.zoom}
      height={height}
      smaller={searched ? smaller : null}
      busy={answer.isPending || answer.isPlaceholderData}
      // A zoom on this chart moves the other charts to the axis that the range belongs to.
      onZoom={(range) => view.set(x === page.x ? { z: writeRange(range) } : { x, z: writeRange(range) })}
      onOpen={trials.length > 1 && !together ? open : undefined}
      place={profile || together ? undefined : (id) => placeOf(trials.find((trial) => trial.id === id)!)}
      below={below}
    />
  );
}

function nameOf(together: Looks, trial: number) {
  const look = together.get(trial);
  return look ? { name: look.why, colour: look.colour, dash: look.dash } : null;
}
