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
          <Head one={experiment} trials={trials.data?.trials ?? []} tab={tab} />
          <Tabs base={`/experiments/${id}`} tabs={tabsOf(experiment)} />
          {OWN_TABS.includes(tab) ? (
            <OwnTab tab={tab} one={experiment} topics={topics} />
          ) : (
            <Loaded found={trials}>
              {({ trials }) => <Tab tab={tab} one={experiment} trials={trials} topics={topics} job={jobSummary} />}
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
const isSingle = (one: Experiment) => one.searcherType === "single" && one.numTrials <= 1;

/** If a search has only one trial, the trial's tabs are shown directly. */
const ONLY_TABS = ["overview", "hyperparameters", "metrics", "profiler"];

function tabsOf(one: Experiment): TabOf[] {
  const ofTrial = (path: string, name: string): TabOf[] => (isSingle(one) ? [{ path, name }] : []);
  return [
    { path: "overview", name: "Overview" },
    { path: "hyperparameters", name: "Hyperparameters" },
    ...ofTrial("metrics", "Metrics"),
    { path: "trials", name: "Trials", count: one.numTrials > 1 ? one.numTrials.toLocaleString("en") : undefined },
    { path: "checkpoints", name: "Checkpoints", count: one.checkpointCount ? one.checkpointCount.toLocaleString("en") : undefined },
    { path: "code", name: "Code" },
    { path: "logs", name: "Logs" },
    { path: "notes", name: "Notes", count: one.notes ? 1 : undefined },
    ...ofTrial("profiler", "Profiler"),
    { path: "story", name: "Story" },
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

function Tab({ tab, one, trials, topics, job }: { tab: string; one: Experiment; trials: Trial[]; topics: string[]; job?: JobSummary }) {
  const [only] = trials;
  if (isSingle(one) && only && ONLY_TABS.includes(tab)) {
    return <OnlyTrial id={only.id} tab={tab} one={one} />;
  }
  switch (tab) {
    case "overview":
      return <Overview one={one} trials={trials} topics={topics} job={job} />;
    case "hyperparameters":
    case "visualization":
      return <Search one={one} trials={trials} topics={topics} />;
    case "trials":
      return <Trials one={one} trials={trials} topics={topics} />;
    case "logs": {
      const first = firstFailed(trials) ?? [...trials].sort((a, b) => a.id - b.id)[0];
      return first ? (
        <>
          <h2>
            Log of trial <Link to={`/experiments/${one.id}/trials/${first.id}/logs`}>{first.id}</Link>
          </h2>
          <Logs source={`trials/${first.id}`} command={`det trial logs ${first.id}`} failed={first.state === "STATE_ERROR"} />
        </>
      ) : (
        <Empty title="No trial has begun">The log starts with the first trial.</Empty>
      );
    }
    default:
      return <Navigate to={`/experiments/${one.id}/overview`} replace />;
  }
}
