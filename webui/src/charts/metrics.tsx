/** The metrics of trials, a chart for each name. */

import { useMemo } from "react";
import { useNavigate } from "react-router";

import type { Trial } from "../api/types";
import { Empty, Failure } from "../parts/basics";
import { Chart } from "./chart";
import { ViewControls } from "./controls";
import { useLink, useView, type View, writeRange } from "./link";
import { type Known, type Line, nearest, toLines } from "./lines";
import { inOrder, isProfile, type Name } from "./names";
import type { Mark } from "./plot";
import { type Part, useSeries, widthFor } from "./series";
import { Visible } from "./visible";

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

/** The same ones as long as nothing of them has changed: charts are drawn anew for others. */
export function useCurves(trials: Trial[]): Curve[] {
  const made = trials.map((trial) => curveOf(trial));
  const key = JSON.stringify(made);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same for as long as it says the same
  return useMemo(() => made, [key]);
}

const SERVER_X: Record<string, string> = { since: "time" };
const WIDEST = 5000;
const HEIGHT = 330;

/** What is asked of the server for a view: with time since the start, a range that holds that of every trial. */
function partOf(trials: Curve[], view: View, group: string): Part {
  const part: Part = { trials: trials.map((one) => one.id), x: SERVER_X[view.x] ?? view.x, width: widthFor(trials.length) };
  if (group) part.group = group;
  if (!view.zoom) return part;
  const starts = view.x === "since" ? trials.map((one) => Date.parse(one.startTime) / 1000) : [0];
  const [from, to] = [view.zoom[0] + Math.min(...starts), view.zoom[1] + Math.max(...starts)];
  const finer = (to - from) / (view.zoom[1] - view.zoom[0]);
  return { ...part, from, to, width: Math.min(WIDEST, Math.ceil(part.width * finer)) };
}

const MARKED = 12;

/** Best checkpoints; of many trials only that of the first, the best. */
function marksOf(lines: Line[], trials: Curve[], open: (trial: Curve) => void): Mark[] {
  const some = trials.length > MARKED ? trials.filter((one) => one.best).slice(0, 1) : trials;
  return some.flatMap((trial) => {
    const line = trial.best && lines.find((one) => one.trial === trial.id && one.group === "validation");
    const at = line ? nearest(line.batches, trial.best!.batches) : -1;
    const y = line?.ys[at];
    if (!line || typeof y !== "number") return [];
    return [
      { trial: trial.id, x: line.xs[at]!, y, label: `best checkpoint of trial ${trial.id}: ${trial.best!.uuid}`, open: () => open(trial) },
    ];
  });
}

const placeOf = (trial: Curve) => `/experiments/${trial.experimentId}/trials/${trial.id}`;

/** One chart for a metric's name: all groups together, of one trial or of several. */
export function MetricChart({
  trials,
  metric,
  topics,
  group = "",
  profile = false,
  searched = false,
  height,
}: {
  trials: Curve[];
  metric: string;
  topics: string[];
  group?: string;
  profile?: boolean;
  searched?: boolean;
  height?: number;
}) {
  const view = useView();
  const navigate = useNavigate();
  const found = useSeries(partOf(trials, view, group), metric, topics);
  const { x, smooth } = view;
  const lines = useMemo(() => {
    const shown = (found.data ?? []).filter((one) => isProfile(one.group) === profile);
    return toLines(shown, trials, { weight: smooth, sinceStart: x === "since" });
  }, [found.data, trials, x, smooth, profile]);
  const marks = useMemo(
    () => (searched ? marksOf(lines, trials, (trial) => navigate(`${placeOf(trial)}/checkpoints?checkpoint=${trial.best!.uuid}`)) : []),
    [lines, trials, searched, navigate],
  );
  const open = (id: number) => {
    const trial = trials.find((one) => one.id === id);
    if (trial && trials.length > 1) navigate(`${placeOf(trial)}/overview`);
  };
  if (found.error && !found.data) return <Failure error={found.error} />;
  return (
    <Chart
      title={metric}
      lines={lines}
      axis={view.x}
      log={view.log}
      band={view.band}
      marks={marks}
      zoom={view.zoom}
      height={height}
      busy={found.isPending || found.isPlaceholderData}
      onZoom={(range) => view.set({ z: writeRange(range) })}
      onOpen={trials.length > 1 ? open : undefined}
      place={profile ? undefined : (id) => placeOf(trials.find((one) => one.id === id)!)}
    />
  );
}

export function Metrics({
  trials,
  names,
  searched,
  topics,
  profile = false,
}: {
  trials: Curve[];
  names: Name[];
  searched: string;
  topics: string[];
  profile?: boolean;
}) {
  const view = useView();
  const { params, set } = useLink();
  const mine = names.filter((one) => isProfile(one.group) === profile);
  const groups = [...new Set(mine.map((one) => one.group))].sort();
  const group = params.get("g") ?? "";
  const all = inOrder(
    mine.filter((one) => !group || one.group === group),
    searched,
  );
  const shown = all.filter((name) => name.toLowerCase().includes(view.find.toLowerCase()));
  if (!mine.length && profile)
    return <Empty command="profiling: {enabled: true}">This trial is not profiled. Turn it on in the configuration.</Empty>;
  if (!mine.length) return <Empty>No metrics have been reported yet. They appear here as soon as the script reports some.</Empty>;
  return (
    <>
      <ViewControls names={all} />
      <div className="controls">
        <label>
          name
          <input type="search" value={view.find} placeholder="part of a name" onChange={(event) => set({ q: event.target.value })} />
        </label>
        {groups.length > 1 && (
          <label>
            group
            <select value={group} onChange={(event) => set({ g: event.target.value })}>
              <option value="">all</option>
              {groups.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        )}
        <span className="soft" role="status">
          {shown.length === all.length
            ? `${all.length.toLocaleString("en")} metrics`
            : `${shown.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} metrics`}
        </span>
      </div>
      <div className="charts">
        {shown.map((name) => (
          <Visible key={name} name={name} height={HEIGHT}>
            {() => (
              <MetricChart trials={trials} metric={name} topics={topics} group={group} profile={profile} searched={name === searched} />
            )}
          </Visible>
        ))}
      </div>
    </>
  );
}
