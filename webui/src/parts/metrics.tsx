import { useMemo, useState } from "react";
import { useSearchParams } from "react-router";

import { query } from "../api/client";
import { useData } from "../api/data";
import type { Point, Trial } from "../api/types";
import { Empty, Failure } from "./basics";
import { type Axis, Chart, type Line } from "./chart";
import { colour } from "./format";

interface Series {
  trials: { trial: Trial; metrics: { group: string; data: Point[] }[] }[];
}
const POINTS = 1000;

/** How curves are drawn; it lies in the address, so that a copied link shows the same. */
export function useView() {
  const [params, setParams] = useSearchParams();
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  return {
    axis: (params.get("x") ?? "batches") as Axis,
    log: params.get("y") === "log",
    smooth: Number(params.get("s") ?? 0),
    set,
  };
}

export function ViewControls({ epochs }: { epochs: boolean }) {
  const view = useView();
  return (
    <div className="controls">
      <label>
        x
        <select value={view.axis} onChange={(event) => view.set("x", event.target.value.replace("batches", ""))}>
          <option value="batches">batches</option>
          {(epochs || view.axis === "epoch") && <option value="epoch">epoch</option>}
          <option value="time">time</option>
        </select>
      </label>
      <label>
        y
        <select value={view.log ? "log" : ""} onChange={(event) => view.set("y", event.target.value)}>
          <option value="">linear</option>
          <option value="log">logarithmic</option>
        </select>
      </label>
      <label>
        smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={view.smooth}
          onChange={(event) => view.set("s", event.target.value === "0" ? "" : event.target.value)}
        />
      </label>
    </div>
  );
}

const x = (point: Point, axis: Axis) =>
  axis === "time" ? Date.parse(point.time) / 1000 : axis === "epoch" ? (point.epoch ?? NaN) : point.batches;

function lineOf(name: string, points: Point[], metric: string, axis: Axis, tint: string, dash: boolean): Line {
  const known = points.filter((point) => metric in point.values && !Number.isNaN(x(point, axis)));
  const ordered = known.map((point) => [x(point, axis), point.values[metric]] as const).sort((a, b) => a[0] - b[0]);
  return {
    name,
    colour: tint,
    dash,
    xs: ordered.map(([at]) => at),
    ys: ordered.map(([, value]) => (typeof value === "number" && Number.isFinite(value) ? value : null)),
  };
}

/** One chart for a metric's name: training and validation together, of one trial or of several. */
export function MetricChart({ trials, metric, topics }: { trials: number[]; metric: string; topics: string[] }) {
  const view = useView();
  const [range, setRange] = useState<[number, number] | null>(null);
  const zoomed = range && view.axis === "batches" ? { startBatches: Math.floor(range[0]), endBatches: Math.ceil(range[1]) } : {};
  const path = `trials/time-series${query({ trialIds: trials, metricNames: metric, maxDatapoints: POINTS, ...zoomed })}`;
  const found = useData<Series>(path, topics, true);
  const lines = useMemo(
    () =>
      (found.data?.trials ?? []).flatMap(({ trial, metrics }) =>
        metrics
          .map(({ group, data }) => {
            const name = trials.length > 1 ? `trial ${trial.id} ${group}` : group;
            const tint = trials.length > 1 ? colour(trial.id) : colour(group === "validation" ? 1 : group === "training" ? 0 : 2);
            return lineOf(name, data, metric, view.axis, tint, group === "validation" && trials.length > 1);
          })
          .filter((line) => line.xs.length),
      ),
    [found.data, metric, view.axis, trials.length],
  );
  if (found.error) return <Failure error={found.error} />;
  return (
    <Chart title={metric} lines={lines} axis={view.axis} log={view.log} smooth={view.smooth} onZoom={setRange} />
  );
}

/** Names of all metrics that trials have reported, of training or of the profiler; the searcher's first. */
export function namesOf(trials: Trial[], first: string, profile: boolean): string[] {
  const names = new Set(
    trials.flatMap((trial) =>
      Object.entries(trial.summaryMetrics ?? {})
        .filter(([group]) => group.startsWith("profile.") === profile)
        .flatMap(([, metrics]) => Object.entries(metrics).filter(([, one]) => one.type === "number").map(([name]) => name)),
    ),
  );
  return [...names].sort((a, b) => Number(b === first) - Number(a === first) || a.localeCompare(b));
}

export function Metrics({ trials, first, topics, profile = false }: { trials: Trial[]; first: string; topics: string[]; profile?: boolean }) {
  const names = namesOf(trials, first, profile);
  const ids = trials.map((trial) => trial.id);
  if (!names.length && profile) return <Empty command="profiling: {enabled: true}">This trial is not profiled. Turn it on in the configuration.</Empty>;
  if (!names.length) return <Empty>No metrics have been reported yet. They appear here as soon as the script reports some.</Empty>;
  return (
    <>
      <ViewControls epochs={names.includes("epoch")} />
      <div className="charts">
        {names.map((name) => (
          <MetricChart key={name} trials={ids} metric={name} topics={topics} />
        ))}
      </div>
    </>
  );
}
