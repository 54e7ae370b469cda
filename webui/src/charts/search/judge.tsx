/** How trials are compared: by which metric, reported when, for how many trials, on which scale. */

import { type ReactNode, useMemo } from "react";

import type { Experiment, Trial } from "../../api/types";
import { NumberField, Select } from "../../ui/field";
import { Popover } from "../../ui/menu";
import { useLink } from "../link";
import type { Name } from "../names";
import { useSeries } from "../series";
import type { Scaling } from "./axes";
import { bestOf, type Judge, valueIn } from "./rows";

export function useJudge(experiment: Experiment): Judge & { scaling: Scaling; top: number; isDefault: boolean } {
  const { params } = useLink();
  const [group, ...name] = (params.get("m") ?? `validation:${experiment.searcherMetric}`).split(":");
  const usual = group === "validation" && name.join(":") === experiment.searcherMetric;
  const smaller = experiment.config.searcher.smaller_is_better !== false;
  const batches = Number(params.get("at") || NaN);
  const scaling = params.get("sc");
  return {
    group: group!,
    name: name.join(":"),
    smaller: params.get("o") ? params.get("o") === "min" : smaller,
    batches: Number.isFinite(batches) ? batches : null,
    margin: Number(params.get("mg") ?? 0) || 0,
    scaling: scaling === "log" || scaling === "linear" ? scaling : "",
    top: Number(params.get("n") ?? 0) || 0,
    isDefault: usual && !params.get("at") && !params.get("o"),
  };
}

/**
 * The value of each trial: the trial's own figure for the searcher's metric, otherwise its series reduced to one
 * bucket. Null until the series are there.
 */
export function useValues(trials: Trial[], judge: Judge & { isDefault: boolean }, topics: string[]): Map<number, number | null> | null {
  const part = { trials: judge.isDefault ? [] : trials.map((trial) => trial.id), group: judge.group, x: "batches", width: 1 };
  const around = judge.batches === null ? {} : { from: judge.batches - judge.margin, to: judge.batches + judge.margin };
  const answer = useSeries({ ...part, ...around }, judge.name, topics);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `judge` is a new object on every render
  return useMemo(
    () =>
      judge.isDefault
        ? new Map(trials.map((trial) => [trial.id, bestOf(trial, judge.name)]))
        : answer.isLoading
          ? null
          : new Map((answer.data ?? []).map((series) => [series.trialId, valueIn(series, judge)])),
    [judge.isDefault, judge.name, judge.smaller, judge.batches === null, trials, answer.data, answer.isLoading],
  );
}

const ORDERS = [
  ["min", "lowest"],
  ["max", "highest"],
] as const;
const SCALES = [
  ["", "as the configuration says"],
  ["linear", "linear"],
  ["log", "logarithmic"],
] as const;
const TOPS = [10, 20, 50, 100, 500];
const MOST_METRICS = 1000;

export function JudgeControls({
  experiment,
  names,
  total,
  children,
}: {
  experiment: Experiment;
  names: Name[];
  total: number;
  children?: ReactNode;
}) {
  const { params, set } = useLink();
  const judge = useJudge(experiment);
  const metrics = names.filter((each) => !each.group.startsWith("profile.")).map((each) => `${each.group}:${each.name}`);
  const chosen = `${judge.group}:${judge.name}`;
  const usual = `validation:${experiment.searcherMetric}`;
  const tops = TOPS.filter((count) => count < total || count === judge.top).map((count) => [String(count), `best ${count}`] as const);
  return (
    <>
      <Select
        small
        label="Metric"
        value={chosen}
        options={[...new Set([chosen, ...metrics])].slice(0, MOST_METRICS).map((each) => [each, each.replace(":", " ")] as const)}
        onChange={(m) => set({ m: m === usual ? "" : m, o: "" })}
      />
      <Select
        small
        label="Trials"
        value={String(judge.top)}
        options={[["0", `all ${total}`], ...tops]}
        onChange={(n) => set({ n: n === "0" ? "" : n })}
      />
      <Popover label="How trials are judged" text={judge.batches === null ? "At each trial's best" : `At ${judge.batches} batches`} small>
        <div className="form">
          <Select above label="Best is" value={judge.smaller ? "min" : "max"} options={ORDERS} onChange={(o) => set({ o })} />
          <NumberField label="At batches" min={0} placeholder="best" value={params.get("at") ?? ""} onChange={(at) => set({ at })} />
          <NumberField
            label="Tolerance, in batches"
            min={0}
            placeholder="0"
            value={params.get("mg") ?? ""}
            onChange={(mg) => set({ mg })}
          />
          <Select above label="Scales" value={judge.scaling} options={SCALES} onChange={(sc) => set({ sc })} />
        </div>
      </Popover>
      {children}
    </>
  );
}
