import { Link, Navigate, useParams } from "react-router";

import { ApiError } from "../../api/client";
import { useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { Loaded, Tabs } from "../../parts/basics";
import { Logs } from "../../parts/logs";
import { Metrics } from "../../parts/metrics";
import { Checkpoints } from "./checkpoints";
import { Code } from "./code";
import { Gone } from "./gone";
import { Head, type JobSummary } from "./head";
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
  const found = useData<{ experiment: Experiment; jobSummary?: JobSummary }>(`experiments/${id}`, [...topics.slice(0, 1), "queue"]);
  const trials = useData<{ trials: Trial[] }>(
    `experiments/${id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&limit=1000`,
    topics,
  );
  if (found.error instanceof ApiError && found.error.status === 404) return <Gone kind="experiment" id={id} />;
  return (
    <Loaded found={found}>
      {({ experiment, jobSummary }) => (
        <>
          <Head one={experiment} job={jobSummary} trials={trials.data?.trials ?? []} />
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
  switch (tab) {
    case "overview":
      return <Metrics trials={trials.slice(0, MANY)} first={one.searcherMetric} topics={topics.slice(1)} />;
    case "hyperparameters":
    case "visualization":
      return <Hyperparameters one={one} trials={trials} topics={topics.slice(1)} />;
    case "trials":
      return <Trials one={one} trials={trials} />;
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
    default:
      return <Navigate to={`/experiments/${one.id}/overview`} replace />;
  }
}
