import { Link, Navigate, useParams } from "react-router";

import { useChange, useData } from "../api/data";
import type { Experiment, Trial } from "../api/types";
import { Metrics, useCurves } from "../charts/metrics";
import { namesOf } from "../charts/names";
import { Card, Copyable, Failure, Loaded, State, Tabs, Time } from "../parts/basics";
import { duration, flat, isOver, number } from "../parts/format";
import { Logs } from "../parts/logs";
import { Checkpoints } from "./experiment/checkpoints";
import { Story } from "./experiment/story";
import { Summaries, Workloads } from "./workloads";

/** Between two looks at a trial that reports; its curves are asked for at once. */
const REST_MS = 1000;

export function TrialPage() {
  const id = Number(useParams().trial);
  const tab = useParams().tab ?? "overview";
  const topics = [`trial.${id}`, `trial.${id}.series`];
  const found = useData<{ trial: Trial }>(`trials/${id}`, topics, false, REST_MS);
  const experiment = found.data?.trial.experimentId;
  const above = useData<{ experiment: Experiment }>(
    experiment ? `experiments/${experiment}` : null,
    experiment ? [`experiment.${experiment}`] : [],
  );
  return (
    <Loaded found={found}>
      {({ trial }) => (
        <>
          <Head trial={trial} name={above.data?.experiment.name ?? ""} />
          <Tabs
            base={`/experiments/${trial.experimentId}/trials/${id}`}
            tabs={[
              ["overview", "Overview"],
              ["hyperparameters", "Hyperparameters"],
              ["metrics", "Metrics"],
              ["checkpoints", "Checkpoints"],
              ["profiler", "Profiler"],
              ["logs", "Logs"],
              ["story", "Story"],
            ]}
          />
          <Tab tab={tab} trial={trial} metric={above.data?.experiment.searcherMetric ?? ""} topics={topics} />
        </>
      )}
    </Loaded>
  );
}

/** What a tab of a trial shows, on the page of its experiment. */
export function OnlyTrial({ id, tab, metric }: { id: number; tab: string; metric: string }) {
  const topics = [`trial.${id}`, `trial.${id}.series`];
  const found = useData<{ trial: Trial }>(`trials/${id}`, topics, false, REST_MS);
  return <Loaded found={found}>{({ trial }) => <Tab tab={tab} trial={trial} metric={metric} topics={topics} />}</Loaded>;
}

/** `/trials/7` of notes and links leads to the page of its experiment. */
export function TrialAlone() {
  const id = Number(useParams().trial);
  const found = useData<{ trial: Trial }>(`trials/${id}`);
  return (
    <Loaded found={found}>{({ trial }) => <Navigate to={`/experiments/${trial.experimentId}/trials/${id}/overview`} replace />}</Loaded>
  );
}

function Head({ trial, name }: { trial: Trial; name: string }) {
  const change = useChange();
  return (
    <header className="head">
      <h1>
        <Link to={`/experiments/${trial.experimentId}/trials`}>{`${trial.experimentId} ${name}`}</Link> · trial {trial.id}{" "}
        <State state={trial.state} why={trial.stateReason} />
      </h1>
      {trial.stateReason && <p className={trial.state === "STATE_ERROR" ? "bad" : "soft"}>{trial.stateReason}</p>}
      <p className="facts">
        <span>{number(trial.totalBatchesProcessed)} batches</span>
        <span>
          started <Time at={trial.startTime} />
        </span>
        <span>ran {duration(trial.wallClockTime)}</span>
        <span>{trial.restarts} restarts</span>
        {trial.warmStartCheckpointUuid && <span>began from {trial.warmStartCheckpointUuid.slice(0, 8)}</span>}
        <button
          type="button"
          disabled={isOver(trial.state)}
          title={isOver(trial.state) ? "It has ended" : ""}
          onClick={() => change.mutate({ method: "POST", path: `trials/${trial.id}/kill` })}
        >
          Kill
        </button>
      </p>
      {change.error ? <Failure error={change.error} /> : null}
    </header>
  );
}

function Tab({ tab, trial, metric, topics }: { tab: string; trial: Trial; metric: string; topics: string[] }) {
  switch (tab) {
    case "overview":
      return <Curves trial={trial} searched={metric} topics={topics.slice(1)} />;
    case "hyperparameters":
      return (
        <Card>
          <table aria-label="Hyperparameters">
            <tbody>
              {Object.entries(flat(trial.hparams)).map(([name, value]) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>
                    <Copyable text={String(value)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {!Object.keys(trial.hparams).length && <p>This trial has no hyperparameters.</p>}
        </Card>
      );
    case "metrics":
      return (
        <>
          <Summaries trial={trial} />
          <Workloads trial={trial} topics={topics} />
        </>
      );
    case "checkpoints":
      return <Checkpoints of={`trials/${trial.id}`} topics={topics.slice(0, 1)} />;
    case "profiler":
      return <Curves trial={trial} searched="samples_per_second" topics={topics.slice(1)} profile />;
    case "logs":
      return <Logs source={`trials/${trial.id}`} command={`det trial logs ${trial.id}`} failed={trial.state === "STATE_ERROR"} />;
    case "story":
      return <Story kind="trial" id={trial.id} topic={`trial.${trial.id}`} />;
    default:
      return <Navigate to={`/experiments/${trial.experimentId}/trials/${trial.id}/overview`} replace />;
  }
}

function Curves({ trial, ...more }: { trial: Trial; searched: string; topics: string[]; profile?: boolean }) {
  const curves = useCurves([trial]);
  return <Metrics trials={curves} names={namesOf(trial)} {...more} />;
}
