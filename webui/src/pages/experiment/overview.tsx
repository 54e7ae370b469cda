/** Curves of an experiment's trials, and of its search. */

import { lazy, Suspense, useMemo } from "react";

import type { Experiment, Trial } from "../../api/types";
import { useLink } from "../../charts/link";
import { Metrics, useCurves } from "../../charts/metrics";
import { useNames } from "../../charts/names";
import { Loaded } from "../../parts/basics";
import { useRungs } from "./trials";

const Hyperparameters = lazy(() => import("./hyperparameters").then((found) => ({ default: found.Hyperparameters })));

/** Trials whose curves are drawn at once, unless more are asked for. */
const MANY = 30;

interface Shown {
  one: Experiment;
  trials: Trial[];
  topics: string[];
}

export function Overview({ one, trials, topics }: Shown) {
  const { params, set } = useLink();
  const names = useNames([one.id], topics);
  const top = Number(params.get("n")) || MANY;
  const curves = useCurves(trials.slice(0, top));
  return (
    <>
      {trials.length > MANY && (
        <p className="soft">
          <label>
            curves of the best{" "}
            <select value={top} onChange={(event) => set({ n: event.target.value === String(MANY) ? "" : event.target.value })}>
              {[10, MANY, 100, trials.length]
                .filter((count, at) => at < 2 || count <= trials.length)
                .map((count) => (
                  <option key={count}>{count}</option>
                ))}
            </select>{" "}
            of {trials.length} trials
          </label>
        </p>
      )}
      <Loaded found={names}>
        {(names) => <Metrics trials={curves} names={names} searched={one.searcherMetric} topics={topics.slice(1)} />}
      </Loaded>
    </>
  );
}

export function Search({ one, trials, topics }: Shown) {
  const names = useNames([one.id], topics);
  const { decided } = useRungs(one, topics);
  const endings = useMemo(() => new Map([...decided].map(([id, found]) => [id, found.ending])), [decided]);
  return (
    <Suspense fallback={<div className="skeleton" role="status" aria-label="Loading" />}>
      <Hyperparameters one={one} trials={trials} names={names.data ?? []} endings={endings} topics={topics.slice(1)} />
    </Suspense>
  );
}
