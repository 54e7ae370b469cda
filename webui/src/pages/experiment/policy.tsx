import { useState } from "react";

import { query } from "../../api/client";
import { useChange, useData } from "../../api/data";
import type { Checkpoint, Experiment } from "../../api/types";
import { Card, Copyable, Failure } from "../../parts/basics";
import { isOver, size } from "../../parts/format";

export interface Policy {
  best: number;
  trialBest: number;
  trialLatest: number;
}

export const policyOf = (one: Experiment): Policy => {
  const storage = one.config.checkpoint_storage ?? {};
  return { best: storage.save_experiment_best ?? 0, trialBest: storage.save_trial_best ?? 1, trialLatest: storage.save_trial_latest ?? 1 };
};
const preview = (id: number, policy: Policy) =>
  `/experiments/${id}/preview_gc${query({ save_experiment_best: policy.best, save_trial_best: policy.trialBest, save_trial_latest: policy.trialLatest })}`;
const NAMES: [keyof Policy, string][] = [
  ["best", "best of the experiment"],
  ["trialBest", "best of each trial"],
  ["trialLatest", "latest of each trial"],
];

/** Which checkpoints go once the experiment is over, by uuid; asked of the service that decides. */
export function useGoing(one: Experiment | undefined, policy: Policy | null, topics: string[]) {
  const found = useData<{ checkpoints: Checkpoint[] }>(one && policy ? preview(one.id, policy) : null, topics, true);
  return { going: new Set(found.data?.checkpoints.map((checkpoint) => checkpoint.uuid) ?? []), error: found.error };
}

const bytes = (checkpoints: Checkpoint[]) =>
  checkpoints.reduce((sum, one) => sum + Object.values(one.resources).reduce((inner, part) => inner + Number(part), 0), 0);

/** The three numbers, and what others would do before they are set. */
export function PolicyCard({
  one,
  checkpoints,
  tried,
  onTry,
  going,
}: {
  one: Experiment;
  checkpoints: Checkpoint[];
  tried: Policy;
  onTry: (policy: Policy) => void;
  going: Set<string>;
}) {
  const [done, setDone] = useState("");
  const change = useChange(() => setDone("Saved."));
  const now = policyOf(one);
  const same = NAMES.every(([name]) => now[name] === tried[name]);
  const there = checkpoints.filter(
    (checkpoint) => checkpoint.state === "STATE_COMPLETED" || checkpoint.state === "STATE_PARTIALLY_DELETED",
  );
  const leaving = there.filter((checkpoint) => going.has(checkpoint.uuid));
  const save = () =>
    change.mutate({
      method: "PATCH",
      path: `experiments/${one.id}`,
      body: { checkpointStorage: { saveExperimentBest: tried.best, saveTrialBest: tried.trialBest, saveTrialLatest: tried.trialLatest } },
    });
  return (
    <Card
      title="What is kept"
      more={
        <Copyable
          text={`det e set gc-policy --save-experiment-best ${tried.best} --save-trial-best ${tried.trialBest} --save-trial-latest ${tried.trialLatest} ${one.id}`}
        />
      }
    >
      <div className="controls">
        {NAMES.map(([name, words]) => (
          <label key={name}>
            {words}
            <input
              type="number"
              min={0}
              value={tried[name]}
              onChange={(event) => onTry({ ...tried, [name]: Math.max(0, Number(event.target.value)) })}
            />
          </label>
        ))}
        <button type="button" disabled={same || change.isPending} onClick={save}>
          Set this policy
        </button>
        <button type="button" disabled={same} onClick={() => onTry(now)}>
          Back to the present one
        </button>
        <span role="status">{same ? done : ""}</span>
      </div>
      <p>
        {same ? "" : "With these numbers "}
        {leaving.length} of {there.length} checkpoints {leaving.length === 1 ? "goes" : "go"}
        {isOver(one.state) ? "" : " once the experiment is over"}, {size(bytes(leaving))} of {size(bytes(there))}.{" "}
        <span className="soft">Versions of registered models always stay.</span>
      </p>
      {change.error ? <Failure error={change.error} /> : null}
    </Card>
  );
}

/** Why a checkpoint stays or goes, by the same ranks that retention uses. */
export function reasons(checkpoints: Checkpoint[], one: Experiment, policy: Policy, registered: Set<string>): Map<string, string> {
  const sign = one.config.searcher?.smaller_is_better === false ? -1 : 1;
  const live = checkpoints.filter((checkpoint) => checkpoint.training);
  const metric = (checkpoint: Checkpoint) => checkpoint.training!.searcherMetric;
  const ranked = live
    .filter((checkpoint) => typeof metric(checkpoint) === "number")
    .sort((a, b) => sign * (metric(a)! - metric(b)!) || Date.parse(a.reportTime) - Date.parse(b.reportTime));
  const steps = (checkpoint: Checkpoint) => Number(checkpoint.metadata.steps_completed ?? 0);
  const latest = [...live].sort((a, b) => steps(b) - steps(a) || Date.parse(b.reportTime) - Date.parse(a.reportTime));
  const place = (list: Checkpoint[], checkpoint: Checkpoint, inTrial: boolean) =>
    list.filter((other) => !inTrial || other.training!.trialId === checkpoint.training!.trialId).indexOf(checkpoint);
  return new Map(
    checkpoints.map((checkpoint) => {
      if (!checkpoint.training) return [checkpoint.uuid, ""];
      const why = [
        registered.has(checkpoint.uuid) && "a model's version",
        within(place(ranked, checkpoint, false), policy.best) && `number ${place(ranked, checkpoint, false) + 1} of the experiment`,
        within(place(ranked, checkpoint, true), policy.trialBest) && "best of its trial",
        within(place(latest, checkpoint, true), policy.trialLatest) && "latest of its trial",
      ].filter(Boolean);
      return [checkpoint.uuid, why.join(", ")];
    }),
  );
}

const within = (place: number, count: number) => place >= 0 && place < count;
