import { Link, Navigate, useParams } from "react-router";

import { ApiError } from "../../api/client";
import { useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { Loaded, Tabs } from "../../parts/basics";
import { Logs } from "../../parts/logs";
import { OnlyTrial } from "../trial";
import { Checkpoints } from "./checkpoints";
import { Code } from "./code";
import { Gone } from "./gone";
import { Head, type JobSummary } from "./head";
import { Notes } from "./notes";
import { Overview, Search } from "./overview";
import { Story } from "./story";
import { Trials } from "./trials";

/** Between two looks at the trials of an experiment that reports; their curves are asked for at once. */
const REST_MS = 1000;
/** Of the experiment itself: thousands of trials change it hundreds of times a second. */
const STATE_REST_MS = 300;

export function ExperimentPage() {
  const { id: text, tab: named, view } = useParams();
  const id = Number(text);
  const tab = named ?? (view ? "visualization" : "overview");
  const topics = [`experiment.${id}`, `experiment.${id}.series`];
  const found = useData<{ experiment: Experiment; jobSummary?: JobSummary }>(
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
  if (found.error instanceof ApiError && found.error.status === 404) return <Gone kind="experiment" id={id} />;
  return (
    <Loaded found={found}>
      {({ experiment, jobSummary }) => (
        <>
          <Head one={experiment} job={jobSummary} trials={trials.data?.trials ?? []} />
          <Tabs base={`/experiments/${id}`} tabs={tabsOf(experiment)} />
          {OWN_TABS.includes(tab) ? (
            <OwnTab tab={tab} one={experiment} topics={topics} />
          ) : (
            <Loaded found={trials}>{({ trials }) => <Tab tab={tab} one={experiment} trials={trials} topics={topics} />}</Loaded>
          )}
        </>
      )}
    </Loaded>
  );
}

/** Tabs that need nothing of the trials, and so do not wait for them. */
const OWN_TABS = ["checkpoints", "code", "notes", "story"];

/** Scripts outside of the cluster may make many trials of a search that is called single. */
const isSingle = (one: Experiment) => one.searcherType === "single" && one.numTrials <= 1;

/** Where a search has one trial only, its tabs are at hand at once. */
const ONLY_TABS = ["hyperparameters", "metrics", "profiler"];

function tabsOf(one: Experiment): [string, string][] {
  const ofTrial = (id: string, name: string): [string, string][] => (isSingle(one) ? [[id, name]] : []);
  return [
    ["overview", "Overview"],
    ["hyperparameters", "Hyperparameters"],
    ...ofTrial("metrics", "Metrics"),
    ["trials", "Trials"],
    ["checkpoints", "Checkpoints"],
    ["code", "Code"],
    ["logs", "Logs"],
    ["notes", "Notes"],
    ...ofTrial("profiler", "Profiler"),
    ["story", "Story"],
  ];
}

function OwnTab({ tab, one, topics }: { tab: string; one: Experiment; topics: string[] }) {
  switch (tab) {
    case "checkpoints":
      return <Checkpoints of={`experiments/${one.id}`} topics={topics.slice(0, 1)} experiment={one} />;
    case "code":
      return <Code one={one} />;
    case "notes":
      return <Notes one={one} />;
    default:
      return <Story kind="experiment" id={one.id} topic={`experiment.${one.id}`} trials={one.trialIds} />;
  }
}

function Tab({ tab, one, trials, topics }: { tab: string; one: Experiment; trials: Trial[]; topics: string[] }) {
  const [only] = trials;
  if (isSingle(one) && only && ONLY_TABS.includes(tab)) {
    return <OnlyTrial id={only.id} tab={tab} metric={one.searcherMetric} />;
  }
  switch (tab) {
    case "overview":
      return <Overview one={one} trials={trials} topics={topics} />;
    case "hyperparameters":
    case "visualization":
      return <Search one={one} trials={trials} topics={topics} />;
    case "trials":
      return <Trials one={one} trials={trials} topics={topics} />;
    case "logs": {
      const first = trials.find((trial) => trial.state === "STATE_ERROR") ?? [...trials].sort((a, b) => a.id - b.id)[0];
      return first ? (
        <>
          <h2>
            Log of trial <Link to={`/experiments/${one.id}/trials/${first.id}/logs`}>{first.id}</Link>
          </h2>
          <Logs source={`trials/${first.id}`} command={`det trial logs ${first.id}`} failed={first.state === "STATE_ERROR"} />
        </>
      ) : (
        <p>No trial has begun.</p>
      );
    }
    default:
      return <Navigate to={`/experiments/${one.id}/overview`} replace />;
  }
}
