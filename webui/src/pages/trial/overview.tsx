/** A trial at a glance: how good, how far, what it cost; its charts, values, checkpoints and runs. */

import { Copy } from "lucide-react";
import { useMemo } from "react";
import { Link } from "react-router";

import { useData } from "../../api/data";
import type { Checkpoint, Experiment, Trial } from "../../api/types";
import { Board } from "../../charts/board";
import { useCurves } from "../../charts/metric";
import { isProfile, namesOf } from "../../charts/names";
import type { Rule } from "../../charts/rules";
import { duration, flat, number } from "../../parts/format";
import { IconButton } from "../../ui/button";
import { Card } from "../../ui/card";
import { StateIcon } from "../../ui/state";
import { Tag } from "../../ui/text";
import { toast } from "../../ui/toast";
import { isSmaller } from "../experiment/listed";
import { metricAt } from "../experiment/metric_at";
import { Nothing } from "../experiment/overview";
import { TrialFacts } from "./facts";
import { usePlaceOf } from "./place";

export function TrialOverview({ trial, experiment, topics }: { trial: Trial; experiment?: Experiment; topics: string[] }) {
  const place = usePlaceOf(trial, experiment);
  const curves = useCurves([trial]);
  const runs = useRuns(trial, topics[0]!);
  const rules = useMemo(() => restartsOf(runs, trial), [runs, trial]);
  const names = namesOf(trial);
  // Machine metrics say nothing about the training.
  const reported = names.some((each) => !isProfile(each.group));
  return (
    <>
      <TrialFacts trial={trial} experiment={experiment} place={place} />
      <div className="with-aside">
        <div className="stack">
          {experiment && !reported && <Nothing experiment={experiment} />}
          {names.length > 0 && (
            <Board
              of="both"
              trials={curves}
              names={names}
              searched={experiment?.searcherMetric ?? ""}
              smaller={experiment ? isSmaller(experiment) : true}
              topics={topics.slice(1)}
              rules={rules}
            />
          )}
        </div>
        <aside className="stack" aria-label="Latest values">
          <Values trial={trial} />
          <Stored trial={trial} topic={topics[0]!} metric={experiment?.searcherMetric ?? ""} />
          <Runs runs={runs} />
        </aside>
      </div>
    </>
  );
}

const SHOWN = 12;

function Values({ trial }: { trial: Trial }) {
  const values = Object.entries(flat(trial.hparams));
  const copy = () =>
    void navigator.clipboard?.writeText(JSON.stringify(trial.hparams, null, 2)).then(() => toast({ text: "Copied as JSON" }));
  if (!values.length) return null;
  return (
    <Card title="Hyperparameters" more={<IconButton icon={<Copy />} label="Copy hyperparameters as JSON" onClick={copy} />}>
      <dl className="kv short">
        {values.slice(0, SHOWN).map(([name, value]) => (
          <div key={name} className="pair">
            <dt title={name}>{name}</dt>
            <dd className="mono" title={String(value)}>
              {number(typeof value === "object" ? JSON.stringify(value) : value, 4)}
            </dd>
          </div>
        ))}
      </dl>
      {values.length > SHOWN && (
        <Link className="link sm" to={`/experiments/${trial.experimentId}/trials/${trial.id}/hyperparameters`}>
          All {values.length}
        </Link>
      )}
    </Card>
  );
}

const FEW = 4;

function Stored({ trial, topic, metric }: { trial: Trial; topic: string; metric: string }) {
  const answer = useData<{ checkpoints: Checkpoint[] }>(
    trial.checkpointCount
      ? `trials/${trial.id}/checkpoints?sortBy=SORT_BY_END_TIME&orderBy=ORDER_BY_DESC&states=STATE_COMPLETED&limit=${FEW}`
      : null,
    [topic],
  );
  const newest = answer.data?.checkpoints ?? [];
  const uuid = trial.bestCheckpoint?.uuid;
  const checkpoint = newest.find((checkpoint) => checkpoint.uuid === uuid);
  const asked = useData<{ checkpoint: Checkpoint }>(answer.data && uuid && !checkpoint ? `checkpoints/${uuid}` : null, [topic]);
  const best = checkpoint ?? asked.data?.checkpoint;
  const all = [...(best ? [best] : []), ...newest.filter((checkpoint) => checkpoint.uuid !== uuid)].slice(0, FEW);
  if (!all.length) return null;
  const place = `/experiments/${trial.experimentId}/trials/${trial.id}/checkpoints`;
  return (
    <Card
      title="Checkpoints"
      more={
        <Link className="link" to={place}>
          All {trial.checkpointCount}
        </Link>
      }
    >
      <ul className="listed">
        {all.map((checkpoint) => (
          <li key={checkpoint.uuid}>
            <Link className="mono" to={`${place}?checkpoint=${checkpoint.uuid}`}>
              {checkpoint.uuid.slice(0, 8)}
            </Link>
            {checkpoint.uuid === trial.bestCheckpoint?.uuid && <Tag kind="best">best</Tag>}
            {checkpoint === newest[0] && <Tag>latest</Tag>}
            <b>{metricAt(checkpoint, metric)}</b>
          </li>
        ))}
      </ul>
    </Card>
  );
}

interface Run {
  allocationId: string;
  state: string;
  startTime: string | null;
  endTime: string | null;
  agentIds?: string[];
  reason?: string;
}

const NO_RUNS: Run[] = [];

/** The runs of a trial, newest first. */
function useRuns(trial: Trial, topic: string): Run[] {
  const answer = useData<{ task: { allocations: Run[] } }>(`tasks/${trial.taskId}`, [topic]);
  const all = answer.data?.task.allocations ?? NO_RUNS;
  return useMemo(() => [...all].reverse(), [all]);
}

const numberOf = (run: Run) => run.allocationId.split(".").at(-1);

/** Where the trial restarted, on both time axes. */
function restartsOf(runs: Run[], trial: Trial): Rule[] {
  const began = Date.parse(trial.startTime) / 1000;
  return runs
    .filter((run) => run.startTime && numberOf(run) !== "1")
    .flatMap((run) => {
      const at = Date.parse(run.startTime!) / 1000;
      const label = `run ${numberOf(run)}`;
      return [
        { axis: "time", at, label },
        { axis: "since", at: at - began, label },
      ];
    });
}

function Runs({ runs }: { runs: Run[] }) {
  if (!runs.length) return null;
  const lasted = (run: Run) =>
    (run.startTime ? (run.endTime ? Date.parse(run.endTime) : Date.now()) - Date.parse(run.startTime) : 0) / 1000;
  return (
    <Card title="Runs" count={runs.length}>
      <ul className="listed">
        {runs.map((run) => (
          <li key={run.allocationId}>
            <StateIcon state={stateOf(run)} />
            <span className="m nowrap">Run {numberOf(run)}</span>
            <span className="ink2 cut" title={run.reason}>
              {[run.agentIds?.join(", "), run.endTime ? run.reason : ""].filter(Boolean).join(": ")}
            </span>
            <b>{run.startTime ? duration(lasted(run)) : run.endTime ? "never ran" : "waits"}</b>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const stateOf = (run: Run) => {
  if (!run.endTime) return run.startTime ? "RUNNING" : "QUEUED";
  if (!run.startTime) return "CANCELED";
  return /fail|error|lost|exit(ed)? (with|code) [1-9]|killed/i.test(run.reason ?? "") ? "ERROR" : "COMPLETED";
};
