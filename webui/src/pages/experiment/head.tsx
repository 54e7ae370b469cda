import { useRef, useState } from "react";
import { Link, useNavigate } from "react-router";

import { useChange, useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { Actions, MoveAction } from "../../parts/actions";
import { Failure, Progress, State, Time } from "../../parts/basics";
import { duration, isOver, number } from "../../parts/format";
import { Fork } from "./fork";
import { said, type Stretch, took, type Timeline } from "./story";

export interface JobSummary {
  state: string;
  jobsAhead: number;
}

const LATEST_STRETCHES = 3;
const REST_MS = 2000;

export function Head({ one, job, trials }: { one: Experiment; job?: JobSummary; trials: Trial[] }) {
  const [forking, setForking] = useState<"" | "fork" | "search">("");
  const navigate = useNavigate();
  const topics = [`experiment.${one.id}`];
  const timeline = useData<Timeline>(`experiments/${one.id}/timeline`, topics, true, REST_MS);
  const children = useData<{ experiments: { experiment: Experiment }[] }>(
    `experiments-search?lean=true&limit=20&sort=id%3Dasc&filter=${encodeURIComponent(JSON.stringify({ filterGroup: { kind: "field", columnName: "forkedFrom", operator: "=", value: one.id } }))}`,
    ["experiments"],
    false,
    REST_MS,
  );
  const single = trials.length === 1 && one.endTime && trials[0]!.checkpointCount > 0 ? trials[0] : undefined;
  const proceed = useChange((answer) => navigate(`/experiments/${answer.experiment.id}/overview`));
  const board = useChange(() => navigate("/tasks"));
  const goOn = () => {
    const length = prompt("Train to which length (searcher.max_length)?", JSON.stringify(one.config.searcher.max_length));
    if (!length || !single) return;
    const config = structuredClone(one.config);
    config.searcher = { ...config.searcher, max_length: JSON.parse(length), source_trial_id: single.id };
    delete config.searcher.source_checkpoint_uuid;
    config.name = `Continuation of trial ${single.id}, experiment ${one.id}`;
    proceed.mutate({ method: "POST", path: "experiments", body: { config: JSON.stringify(config), parentId: one.id, activate: true } });
  };
  const spent = noticeable(timeline.data?.stretches ?? []);
  const source = one.config.searcher?.source_trial_id as number | null | undefined;
  return (
    <header className="head">
      <h1>
        <span className="soft">{one.id}</span> {one.name} <State state={one.state} why={one.stateReason} />{" "}
        {one.archived && <span className="label">archived</span>}
        {one.labels.map((label) => (
          <Link key={label} className="label" to={`/experiments?q=${encodeURIComponent(`tag:${JSON.stringify(label)}`)}`}>
            {label}
          </Link>
        ))}
      </h1>
      <p className="soft">{one.description}</p>
      {one.stateReason && <p className={one.state === "STATE_ERROR" ? "bad" : "soft"}>{one.stateReason}</p>}
      <p className="facts">
        <Progress value={one.progress} /> <End one={one} timeline={timeline.data} />
        <span>{one.numTrials === 1 ? "1 trial" : `${one.numTrials} trials`}</span>
        <span>
          {one.searcherType} on {one.searcherMetric}
        </span>
        {one.bestTrialSearcherMetric !== null && (
          <span>
            best {number(one.bestTrialSearcherMetric)} in trial{" "}
            <Link to={`/experiments/${one.id}/trials/${one.bestTrialId}/overview`}>{one.bestTrialId}</Link>
          </span>
        )}
        <span>
          started <Time at={one.startTime} />
        </span>
        <span>for {duration(one.duration)}</span>
        {one.unmanaged ? (
          <span>runs outside of the cluster</span>
        ) : (
          <>
            <Cost one={one} trials={trials} />
            <Restarts one={one} trials={trials} />
          </>
        )}
        {job && !isOver(one.state) && job.jobsAhead >= 0 && (
          <Link to="/jobs">{job.jobsAhead === 0 ? "first in the queue" : `${job.jobsAhead} ahead in the queue`}</Link>
        )}
        <span>by {one.username}</span>
        {!one.unmanaged && (
          <span>
            pool <Link to={`/resourcepool/${encodeURIComponent(one.resourcePool)}`}>{one.resourcePool}</Link>
          </span>
        )}
        {one.forkedFrom && (
          <span>
            {source ? "continued from" : "forked from"} <Link to={`/experiments/${one.forkedFrom}/overview`}>{one.forkedFrom}</Link>
            {source ? (
              <>
                , <Link to={`/trials/${source}`}>trial {source}</Link>
              </>
            ) : null}
          </span>
        )}
        {children.data && children.data.experiments.length > 0 && (
          <span>
            led to{" "}
            {children.data.experiments.map(({ experiment }) => (
              <Link key={experiment.id} to={`/experiments/${experiment.id}/overview`}>
                {experiment.id}{" "}
              </Link>
            ))}
          </span>
        )}
      </p>
      {spent.length > 1 && (
        <p className="soft">
          {spent.slice(-LATEST_STRETCHES).map(said).join("; ")} <Link to={`/experiments/${one.id}/story`}>whole story</Link>
        </p>
      )}
      <div className="actions">
        <Actions one={one} />
        <MoveAction one={one} />
        <button type="button" onClick={() => setForking("fork")}>
          Fork
        </button>
        <button
          type="button"
          disabled={!single}
          title={single ? "" : "Needs a single trial that has ended with a checkpoint"}
          onClick={goOn}
        >
          Continue Trial
        </button>
        <button type="button" onClick={() => setForking("search")}>
          Hyperparameter Search
        </button>
        <button
          type="button"
          disabled={board.isPending || !one.numTrials}
          title={one.numTrials ? "" : "No trial has begun"}
          onClick={() => board.mutate({ method: "POST", path: "tensorboards", body: { experimentIds: [one.id] } })}
        >
          TensorBoard
        </button>
        {!one.unmanaged && <a href={`/experiments/${one.id}/model_def`}>Download code</a>}
      </div>
      {proceed.error || board.error ? <Failure error={proceed.error ?? board.error} /> : null}
      {forking && <Fork one={one} search={forking === "search"} onClose={() => setForking("")} />}
    </header>
  );
}

/** Slots times the time that runs held them. */
function Cost({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const hours = (trials.reduce((sum, trial) => sum + trial.wallClockTime, 0) * (one.config.resources?.slots_per_trial ?? 1)) / 3600;
  return hours > 0 ? <span title={`${hours} slot hours`}>cost {number(hours, 2)} slot hours</span> : null;
}

function Restarts({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const allowed = one.config.max_restarts as number | undefined;
  const most = Math.max(0, ...trials.map((trial) => trial.restarts));
  if (allowed === undefined || !trials.length) return null;
  return (
    <span title="Failures that a trial may survive">
      restarts {most} of {allowed}
      {trials.length > 1 ? " at most" : ""}
    </span>
  );
}

/** Without what lasted less than a second; what it stood between becomes one. */
function noticeable(stretches: Stretch[]): Stretch[] {
  const found: Stretch[] = [];
  for (const one of stretches.filter((stretch) => took(stretch) >= 1)) {
    const last = found.at(-1);
    if (last?.what === one.what) found[found.length - 1] = { ...last, until: one.until };
    else found.push(one);
  }
  return found;
}

const LEAST_PROGRESS = 0.02;

/** When it will be over: by its pace over all and by its pace while one looks on; their distance is the spread. */
function End({ one, timeline }: { one: Experiment; timeline?: Timeline }) {
  const seen = useRef<[number, number] | null>(null);
  const progress = one.progress;
  if (progress === null || isOver(one.state) || !timeline) return null;
  const ran = timeline.seconds.ran ?? 0;
  if (one.state === "STATE_PAUSED" || progress < LEAST_PROGRESS || ran <= 0) return null;
  const now = Date.now() / 1000;
  seen.current ??= [now, progress];
  const [since, from] = seen.current;
  const whole = ((1 - progress) * ran) / progress;
  const lately = progress > from ? ((1 - progress) * (now - since)) / (progress - from) : whole;
  const [low, high] = [Math.min(whole, lately), Math.max(whole, lately)];
  const spread = high > 1.15 * low ? ` (${duration(low)} to ${duration(high)})` : "";
  return (
    <span title={`at ${new Date((now + whole) * 1000).toLocaleString()} if it goes on like this`}>
      ends in about {duration((low + high) / 2)}
      {spread}
    </span>
  );
}
