import { Check as Tick } from "lucide-react";

import { query } from "../../api/client";
import { useChange, useData } from "../../api/data";
import { useRights } from "../../api/rights";
import type { Checkpoint, Experiment } from "../../api/types";
import { isOver, many, size } from "../../parts/format";
import { Button } from "../../ui/button";
import { NumberField } from "../../ui/field";
import { Failure } from "../../ui/status";
import { Copyable, Tag } from "../../ui/text";
import { toast } from "../../ui/toast";

export interface Policy {
  best: number;
  trialBest: number;
  trialLatest: number;
}

export const policyOf = (experiment: Experiment): Policy => {
  const storage = experiment.config.checkpoint_storage ?? {};
  return { best: storage.save_experiment_best ?? 0, trialBest: storage.save_trial_best ?? 1, trialLatest: storage.save_trial_latest ?? 1 };
};
const preview = (id: number, policy: Policy) =>
  `/experiments/${id}/preview_gc${query({ save_experiment_best: policy.best, save_trial_best: policy.trialBest, save_trial_latest: policy.trialLatest })}`;
const NAMES: [keyof Policy, string][] = [
  ["best", "Best of the experiment"],
  ["trialBest", "Best of each trial"],
  ["trialLatest", "Latest of each trial"],
];

/** The uuids of the checkpoints that will be deleted once the experiment is over, as decided by the service. */
export function useGoing(experiment: Experiment | undefined, policy: Policy | null, topics: string[]) {
  const answer = useData<{ checkpoints: Checkpoint[] }>(experiment && policy ? preview(experiment.id, policy) : null, topics, true);
  return { going: new Set(answer.data?.checkpoints.map((checkpoint) => checkpoint.uuid) ?? []), error: answer.error };
}

export const bytesOf = (checkpoint: Checkpoint) => Object.values(checkpoint.resources).reduce((sum, part) => sum + Number(part), 0);
export const isThere = (checkpoint: Checkpoint) => checkpoint.state === "STATE_COMPLETED" || checkpoint.state === "STATE_PARTIALLY_DELETED";
const whole = (checkpoints: Checkpoint[]) => checkpoints.reduce((sum, checkpoint) => sum + bytesOf(checkpoint), 0);

interface Props {
  experiment: Experiment;
  checkpoints: Checkpoint[];
  tried: Policy;
  onTry: (policy: Policy) => void;
  going: Set<string>;
  registered: Set<string>;
}

/** The three numbers of the policy, with a preview of their effect before they are set. */
export function PolicyCard({ experiment, checkpoints, tried, onTry, going, registered }: Props) {
  const now = policyOf(experiment);
  const change = useChange(() => toast({ text: "The retention policy is saved.", undo: () => change.mutate(request(experiment.id, now)) }));
  const rights = useRights();
  const same = NAMES.every(([name]) => now[name] === tried[name]);
  const command = `det e set gc-policy --save-experiment-best ${tried.best} --save-trial-best ${tried.trialBest} --save-trial-latest ${tried.trialLatest} ${experiment.id}`;
  return (
    <section className="card policy" aria-label="What is kept">
      <div>
        <h2>What is kept {!same && <Tag>not set yet</Tag>}</h2>
        <div className="numbers">
          {NAMES.map(([name, words]) => (
            <NumberField
              key={name}
              label={words}
              hint={now[name] === tried[name] ? undefined : `now ${now[name]}`}
              min={0}
              value={String(tried[name])}
              onChange={(value) => onTry({ ...tried, [name]: Math.max(0, Math.floor(Number(value) || 0)) })}
            />
          ))}
        </div>
        <div className="toolbar">
          <Button
            kind={same ? "plain" : "primary"}
            icon={<Tick />}
            not={same ? "This is the current policy" : rights("control", experiment)}
            disabled={change.isPending}
            onClick={() => change.mutate(request(experiment.id, tried))}
          >
            Set this policy
          </Button>
          {!same && (
            <Button kind="ghost" onClick={() => onTry(now)}>
              Reset to the current policy
            </Button>
          )}
          <Copyable text={command} />
        </div>
        {change.error ? <Failure error={change.error} /> : null}
      </div>
      <Answer experiment={experiment} checkpoints={checkpoints} going={going} registered={registered} same={same} />
    </section>
  );
}

const request = (id: number, policy: Policy) => ({
  method: "PATCH",
  path: `experiments/${id}`,
  body: { checkpointStorage: { saveExperimentBest: policy.best, saveTrialBest: policy.trialBest, saveTrialLatest: policy.trialLatest } },
});

type AnswerProps = Pick<Props, "experiment" | "checkpoints" | "going" | "registered"> & { same: boolean };

function Answer({ experiment, checkpoints, going, registered, same }: AnswerProps) {
  const there = checkpoints.filter(isThere);
  const leaving = there.filter((checkpoint) => going.has(checkpoint.uuid));
  const stays = there.filter((checkpoint) => !going.has(checkpoint.uuid));
  const models = stays.filter((checkpoint) => registered.has(checkpoint.uuid));
  const others = stays.length - models.length;
  const lost = [...new Set(leaving.map((checkpoint) => checkpoint.training?.trialId))].filter(
    (trial) => trial !== undefined && !stays.some((checkpoint) => checkpoint.training?.trialId === trial),
  );
  const all = Math.max(whole(there), 1);
  const when = isOver(experiment.state) ? "" : " once it is over";
  return (
    <div className="answer" aria-live="polite">
      <p>
        <strong>
          {leaving.length} of {there.length} {same ? (leaving.length === 1 ? "goes" : "go") : "would go"}
        </strong>{" "}
        <span className="ink2">
          {size(whole(leaving))} of {size(whole(there))}
          {when}
        </span>
      </p>
      <div className="meter" aria-hidden>
        <i style={{ width: `${((whole(stays) - whole(models)) / all) * 100}%`, background: "var(--done)" }} />
        <i style={{ width: `${(whole(models) / all) * 100}%`, background: "var(--queued)" }} />
        <i className="gone" style={{ width: `${(whole(leaving) / all) * 100}%` }} />
      </div>
      <ul className="toolbar sm ink2">
        <li>
          <i className="sw" style={{ background: "var(--done)" }} /> {others} {others === 1 ? "stays" : "stay"},{" "}
          {size(whole(stays) - whole(models))}
        </li>
        {models.length > 0 && (
          <li>
            <i className="sw" style={{ background: "var(--queued)" }} /> {many(models.length, "version")} of models{" "}
            {models.length === 1 ? "stays" : "stay"} always
          </li>
        )}
        <li>
          <i className="sw" style={{ background: "var(--error)" }} /> {leaving.length} {leaving.length === 1 ? "goes" : "go"}
        </li>
      </ul>
      {lost.length > 0 && (
        <p className="sm ink2">
          {many(lost.length, "trial")} could no longer be continued: {lost.slice(0, 5).join(", ")}
          {lost.length > 5 && ` and ${lost.length - 5} more`}.
        </p>
      )}
    </div>
  );
}

const NTH = ["th", "st", "nd", "rd"];
const nth = (place: number) => `${place}${(place % 100 > 10 && place % 100 < 14 ? "" : NTH[place % 10]) || "th"}`;

/** Why a checkpoint is kept or deleted, by the same ranks that retention uses. */
export function reasons(checkpoints: Checkpoint[], experiment: Experiment, policy: Policy, registered: Set<string>): Map<string, string> {
  const sign = experiment.config.searcher?.smaller_is_better === false ? -1 : 1;
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
      const overall = place(ranked, checkpoint, false);
      const why = [
        registered.has(checkpoint.uuid) && "a model's version",
        overall >= 0 && `${nth(overall + 1)} of all`,
        ofTrial(within(place(ranked, checkpoint, true), policy.trialBest), within(place(latest, checkpoint, true), policy.trialLatest)),
      ].filter(Boolean);
      return [checkpoint.uuid, why.join(", ")];
    }),
  );
}

/** Short, to fit a column. */
const ofTrial = (best: boolean, latest: boolean) =>
  (best || latest) && `${[best && "best", latest && "latest"].filter(Boolean).join(" and ")} of its trial`;

const within = (place: number, count: number) => place >= 0 && place < count;
