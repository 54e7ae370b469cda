import { useState } from "react";
import { Link, Navigate, useNavigate, useParams } from "react-router";

import { useChange, useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { Actions } from "../../parts/actions";
import { Failure, Loaded, Progress, State, Tabs, Time } from "../../parts/basics";
import { duration } from "../../parts/format";
import { Logs } from "../../parts/logs";
import { Metrics } from "../../parts/metrics";
import { Checkpoints } from "./checkpoints";
import { Code } from "./code";
import { Fork } from "./fork";
import { Hyperparameters } from "./hyperparameters";
import { Notes } from "./notes";
import { Story } from "./story";
import { Trials } from "./trials";

const MANY = 30;
/** Trials whose curves are drawn at once; the others are in the table and under Hyperparameters. */

export function ExperimentPage() {
  const id = Number(useParams().id);
  const tab = useParams().tab ?? "overview";
  const topics = [`experiment.${id}`, `experiment.${id}.series`];
  const found = useData<{ experiment: Experiment }>(`experiments/${id}`, topics.slice(0, 1));
  const trials = useData<{ trials: Trial[] }>(
    `experiments/${id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&limit=1000`,
    topics,
  );
  return (
    <Loaded found={found}>
      {({ experiment }) => (
        <>
          <Head one={experiment} trials={trials.data?.trials ?? []} />
          <Tabs
            base={`/experiments/${id}`}
            tabs={[
              ["overview", "Overview"],
              ["hyperparameters", "Hyperparameters"],
              ["trials", `Trials`],
              ["checkpoints", "Checkpoints"],
              ["code", "Code"],
              ["logs", "Logs"],
              ["notes", "Notes"],
              ["story", "Story"],
            ]}
          />
          <Loaded found={trials}>{({ trials }) => <Tab tab={tab} one={experiment} trials={trials} topics={topics} />}</Loaded>
        </>
      )}
    </Loaded>
  );
}

function Tab({ tab, one, trials, topics }: { tab: string; one: Experiment; trials: Trial[]; topics: string[] }) {
  switch (tab) {
    case "overview":
      return <Metrics trials={trials.slice(0, MANY)} first={one.searcherMetric} topics={topics.slice(1)} />;
    case "hyperparameters":
    case "visualization":
      return <Hyperparameters one={one} trials={trials} topics={topics.slice(1)} />;
    case "trials":
      return <Trials one={one} trials={trials} />;
    case "checkpoints":
      return <Checkpoints of={`experiments/${one.id}`} topics={topics.slice(0, 1)} />;
    case "code":
      return <Code one={one} />;
    case "logs": {
      const first = trials.find((trial) => trial.state === "STATE_ERROR") ?? [...trials].sort((a, b) => a.id - b.id)[0];
      return first ? (
        <>
          <h2>
            Log of trial <Link to={`/experiments/${one.id}/trials/${first.id}/logs`}>{first.id}</Link>
          </h2>
          <Logs source={`trials/${first.id}`} command={`det experiment logs ${one.id}`} />
        </>
      ) : (
        <p>No trial has begun.</p>
      );
    }
    case "notes":
      return <Notes one={one} />;
    case "story":
      return <Story kind="experiment" id={one.id} topic={`experiment.${one.id}`} />;
    default:
      return <Navigate to={`/experiments/${one.id}/overview`} replace />;
  }
}

function Head({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const [forking, setForking] = useState(false);
  const navigate = useNavigate();
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
  return (
    <header className="head">
      <h1>
        <span className="soft">{one.id}</span> {one.name} <State state={one.state} why={one.stateReason} />
      </h1>
      <p className="soft">{one.description}</p>
      {one.stateReason && <p className={one.state === "STATE_ERROR" ? "bad" : "soft"}>{one.stateReason}</p>}
      <p className="facts">
        <Progress value={one.progress} /> <span>{one.numTrials === 1 ? "1 trial" : `${one.numTrials} trials`}</span>
        <span>
          {one.searcherType} on {one.searcherMetric}
        </span>
        <span>
          started <Time at={one.startTime} />
        </span>
        <span>for {duration(one.duration)}</span>
        <span>by {one.username}</span>
        <span>pool {one.resourcePool}</span>
        {one.forkedFrom && (
          <span>
            from <Link to={`/experiments/${one.forkedFrom}/overview`}>{one.forkedFrom}</Link>
          </span>
        )}
      </p>
      <div className="actions">
        <Actions one={one} />
        <button type="button" onClick={() => setForking(true)}>
          Fork
        </button>
        <button type="button" disabled={!single} title={single ? "" : "Needs a single trial that has ended with a checkpoint"} onClick={goOn}>
          Continue Trial
        </button>
        <button
          type="button"
          disabled={board.isPending || !one.numTrials}
          onClick={() => board.mutate({ method: "POST", path: "tensorboards", body: { experimentIds: [one.id] } })}
        >
          TensorBoard
        </button>
      </div>
      {proceed.error || board.error ? <Failure error={proceed.error ?? board.error} /> : null}
      {forking && <Fork one={one} onClose={() => setForking(false)} />}
    </header>
  );
}
