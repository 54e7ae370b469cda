/** Which trials are compared by what: the metric, where it was reported, how many trials, which scale. */

import { useMemo } from "react";

import type { Experiment, Trial } from "../../api/types";
import { useLink } from "../link";
import type { Name } from "../names";
import { useSeries } from "../series";
import type { Scaling } from "./axes";
import { bestOf, type Judge, valueIn } from "./rows";

export function useJudge(one: Experiment): Judge & { scaling: Scaling; top: number; isDefault: boolean } {
  const { params } = useLink();
  const [group, ...name] = (params.get("m") ?? `validation:${one.searcherMetric}`).split(":");
  const usual = group === "validation" && name.join(":") === one.searcherMetric;
  const smaller = one.config.searcher.smaller_is_better !== false;
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

/** The value of each trial: what it says itself of the searcher's metric, otherwise its series in one bucket. */
export function useValues(trials: Trial[], judge: Judge & { isDefault: boolean }, topics: string[]): Map<number, number | null> {
  const part = { trials: judge.isDefault ? [] : trials.map((one) => one.id), group: judge.group, x: "batches", width: 1 };
  const around = judge.batches === null ? {} : { from: judge.batches - judge.margin, to: judge.batches + judge.margin };
  const found = useSeries({ ...part, ...around }, judge.name, topics);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `judge` is made anew with every drawing, and its values are not
  return useMemo(
    () =>
      judge.isDefault
        ? new Map(trials.map((one) => [one.id, bestOf(one, judge.name)]))
        : new Map((found.data ?? []).map((one) => [one.trialId, valueIn(one, judge)])),
    [judge.isDefault, judge.name, judge.smaller, judge.batches === null, trials, found.data],
  );
}

export function JudgeControls({ one, names, total }: { one: Experiment; names: Name[]; total: number }) {
  const { params, set } = useLink();
  const judge = useJudge(one);
  const metrics = names.filter((each) => !each.group.startsWith("profile.")).map((each) => `${each.group}:${each.name}`);
  const chosen = `${judge.group}:${judge.name}`;
  return (
    <div className="controls">
      <label>
        metric
        <select
          value={chosen}
          onChange={(event) => set({ m: event.target.value === `validation:${one.searcherMetric}` ? "" : event.target.value, o: "" })}
        >
          {[...new Set([chosen, ...metrics])].slice(0, 1000).map((each) => (
            <option key={each} value={each}>
              {each.replace(":", " ")}
            </option>
          ))}
        </select>
      </label>
      <label>
        best is
        <select value={judge.smaller ? "min" : "max"} onChange={(event) => set({ o: event.target.value })}>
          <option value="min">lowest</option>
          <option value="max">highest</option>
        </select>
      </label>
      <label>
        at batches
        <input
          type="number"
          min={0}
          placeholder="best"
          value={params.get("at") ?? ""}
          onChange={(event) => set({ at: event.target.value })}
        />
      </label>
      <label>
        ±
        <input
          type="number"
          min={0}
          placeholder="0"
          aria-label="margin in batches"
          value={params.get("mg") ?? ""}
          onChange={(event) => set({ mg: event.target.value })}
        />
      </label>
      <label>
        trials
        <select value={judge.top} onChange={(event) => set({ n: event.target.value === "0" ? "" : event.target.value })}>
          <option value={0}>all {total}</option>
          {[10, 20, 50, 100, 500]
            .filter((count) => count < total || count === judge.top)
            .map((count) => (
              <option key={count} value={count}>
                best {count}
              </option>
            ))}
        </select>
      </label>
      <label>
        scales
        <select value={judge.scaling} onChange={(event) => set({ sc: event.target.value })}>
          <option value="">by span</option>
          <option value="linear">linear</option>
          <option value="log">logarithmic</option>
        </select>
      </label>
    </div>
  );
}
