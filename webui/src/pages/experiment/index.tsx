import { Link, Navigate, useParams } from "react-router";

import { ApiError } from "../../api/client";
import { useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { Empty, Loaded } from "../../ui/status";
import { type Tab as TabOf, Tabs } from "../../ui/tabs";
import { Logs } from "../../parts/logs";
import { OnlyTrial } from "../trial";
import { firstFailed } from "./cause";
import { Checkpoints } from "./checkpoints";
import { Code } from "./code";
import { Gone } from "./gone";
import type { JobSummary } from "./facts";
import { Head } from "./head";
import { Notes } from "./notes";
import { Overview, Search } from "./overview";
import { Story } from "./story";
import { Trials } from "./trials";

/** Minimum interval between refetches of the trials of a reporting experiment; their curves are not delayed. */
const REST_MS = 1000;
/** The same for the experiment itself: thousands of trials change it hundreds of times per second. */
const STATE_REST_MS = 300;

export function ExperimentPage() {
  const { id: text, tab: named, view } = useParams();
  const id = Number(text);
  const tab = named ?? (view ? "visualization" : "overview");
  const topics = [`experiment.${id}`, `experiment.${id}.series`];
  const answer = useData<{ experiment: Experiment; jobSummary?: JobSummary }>(
    `experiments/${id}`,
    [...topics.slice(0, 1), "queue"],
    false,
    STATE_REST_MS,
  );
  const trials = useData<{ trials: Trial[] }>(
    `experiments/${id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&lean=true`,
    topics,
    false,
    REST_MS,
  );
  if (answer.error instanceof ApiError && answer.error.status === 404) return <Gone kind="experiment" id={id} />;
  return (
    <Loaded answer={answer}>
      {({ experiment, jobSummary }) => (
        <>
          <Head experiment={experiment} trials={trials.data?.trials ?? []} tab={tab} />
          <Tabs base={`/experiments/${id}`} tabs={tabsOf(experiment)} />
          {OWN_TABS.includes(tab) ? (
            <OwnTab tab={tab} experiment={experiment} topics={topics} />
          ) : (
            <Loaded answer={trials}>
              {({ trials }) => <Tab tab={tab} experiment={experiment} trials={trials} topics={topics} job={jobSummary} />}
            </Loaded>
          )}
        </>
      )}
    </Loaded>
  );
}

/** Tabs that do not need the trials, and so do not wait for them. */
const OWN_TABS = ["checkpoints", "code", "notes", "story"];

/** Scripts outside of the cluster may create many trials in a search of type `single`. */
const isSingle = (experiment: Experiment) => experiment.searcherType === "single" && experiment.numTrials <= 1;

/** If a search has only one trial, the trial's tabs are shown directly. */
const ONLY_TABS = ["overview", "hyperparameters", "metrics", "profiler"];

function tabsOf(experiment: Experiment): TabOf[] {
  const ofTrial = (path: string, name: string): TabOf[] => (isSingle(experiment) ? [{ path, name }] : []);
  return [
    { path: "overview", name: "Overview" },
    { path: "hyperparameters", name: "Hyperparameters" },
    ...ofTrial("metrics", "Metrics"),
    { path: "trials", name: "Trials", count: experiment.numTrials > 1 ? experiment.numTrials.toLocaleString("en") : undefined },
    {
      path: "checkpoints",
      name: "Checkpoints",
      count: experiment.checkpointCount ? experiment.checkpointCount.toLocaleString("en") : undefined,
    },
    { path: "code", name: "Code" },
    { path: "logs", name: "Logs" },
    { path: "notes", name: "Notes", count: experiment.notes ? 1 : undefined },
    ...ofTrial("profiler", "Profiler"),
    { path: "story", name: "Story" },
  ];
}

function OwnTab({ tab, experiment, topics }: { tab: string; experiment: Experiment; topics: string[] }) {
  switch (tab) {
    case "checkpoints":
      return <Checkpoints of={`experiments/${experiment.id}`} topics={topics.slice(0, 1)} experiment={experiment} />;
    case "code":
      return <Code experiment={experiment} />;
    case "notes":
      return <Notes experiment={experiment} />;
    default:
      return <Story kind="experiment" id={experiment.id} topic={`experiment.${experiment.id}`} trials={experiment.trialIds} />;
  }
}

function Tab({
  tab,
  experiment,
  trials,
  topics,
  job,
}: {
  tab: string;
  experiment: Experiment;
  trials: Trial[];
  topics: string[];
  job?: JobSummary;
}) {
  const [only] = trials;
  if (isSingle(experiment) && only && ONLY_TABS.includes(tab)) {
    return <OnlyTrial id={only.id} tab={tab} experiment={experiment} />;
  }
  switch (tab) {
    case "overview":
      return <Overview experiment={experiment} trials={trials} topics={topics} job={job} />;
    case "hyperparameters":
    case "visualization":
      return <Search experiment={experiment} trials={trials} topics={topics} />;
    case "trials":
      return <Trials experiment={experiment} trials={trials} topics={topics} />;
    case "logs": {
      const first = firstFailed(trials) ?? [...trials].sort((a, b) => a.id - b.id)[0];
      return first ? (
        <>
          <h2>
            Log of trial <Link to={`/experiments/${experiment.id}/trials/${first.id}/logs`}>{first.id}</Link>
          </h2>
          <Logs source={`trials/${first.id}`} command={`det trial logs ${first.id}`} failed={first.state === "STATE_ERROR"} />
        </>
      ) : (
        <Empty title="No trial has begun">The log starts with the first trial.</Empty>
      );
    }
    default:
      return <Navigate to={`/experiments/${experiment.id}/overview`} replace />;
  }
}
