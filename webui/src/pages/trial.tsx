import { ChevronDown, ChevronUp, Layers, SquareTerminal, StepForward, X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link, Navigate, useNavigate, useParams } from "react-router";

import { ApiError } from "../api/client";
import { useChange, useData } from "../api/data";
import { useRights } from "../api/rights";
import type { Experiment, Trial } from "../api/types";
import { Board } from "../charts/board";
import { useCurves } from "../charts/metric";
import { namesOf } from "../charts/names";
import { flat, isOver, stateName, unended } from "../parts/format";
import { Logs } from "../parts/logs";
import { IconButton, LinkButton } from "../ui/button";
import { Card } from "../ui/card";
import { ask } from "../ui/dialog";
import { useNarrow } from "../ui/media";
import { Menu } from "../ui/menu";
import { PageHead, useActionsHere, usePlace } from "../ui/page";
import { Empty, Loaded } from "../ui/status";
import { Tabs } from "../ui/tabs";
import { Copyable, Cut, Tag, Time } from "../ui/text";
import { failed, toast } from "../ui/toast";
import { logOf, useWhy } from "./experiment/cause";
import { Checkpoints } from "./experiment/checkpoints";
import { Continue } from "./experiment/continue";
import { FailedNote } from "./experiment/failed";
import { Gone } from "./experiment/gone";
import { Story } from "./experiment/story";
import { TrialOverview } from "./trial/overview";
import { type Place, usePlaceOf } from "./trial/place";
import { Summaries, Workloads } from "./workloads";

/** The usual exit text, which adds nothing to the state. */
const RAN_THROUGH = "exit code 0";
/** States whose reason is worth a line; of a trial that runs it says no more than that the search asked for it. */
const STANDS = /PAUSED|QUEUED|CANCELED|COMPLETED|STOPPING/;
/** Minimum interval between refetches of a reporting trial; its curves are not delayed. */
const REST_MS = 1000;

export function TrialPage() {
  const id = Number(useParams().trial);
  const tab = useParams().tab ?? "overview";
  const topics = [`trial.${id}`, `trial.${id}.series`];
  const answer = useData<{ trial: Trial }>(`trials/${id}`, topics, false, REST_MS);
  const experiment = answer.data?.trial.experimentId;
  const above = useData<{ experiment: Experiment }>(
    experiment ? `experiments/${experiment}` : null,
    experiment ? [`experiment.${experiment}`] : [],
  );
  if (answer.error instanceof ApiError && answer.error.status === 404) return <Gone kind="trial" id={id} />;
  return (
    <Loaded answer={answer} shape="page">
      {({ trial }) => (
        <>
          <Head trial={trial} experiment={above.data?.experiment} tab={tab} />
          <Tabs
            base={`/experiments/${trial.experimentId}/trials/${id}`}
            tabs={[
              { path: "overview", name: "Overview" },
              { path: "hyperparameters", name: "Hyperparameters" },
              { path: "metrics", name: "Metrics" },
              { path: "checkpoints", name: "Checkpoints", count: trial.checkpointCount || undefined },
              { path: "profiler", name: "Profiler" },
              { path: "logs", name: "Logs" },
              { path: "story", name: "Story" },
            ]}
          />
          <Tab tab={tab} trial={trial} experiment={above.data?.experiment} topics={topics} />
        </>
      )}
    </Loaded>
  );
}

/** The content of a trial's tab, on the page of its experiment. */
export function OnlyTrial({ id, tab, experiment }: { id: number; tab: string; experiment: Experiment }) {
  const topics = [`trial.${id}`, `trial.${id}.series`];
  const answer = useData<{ trial: Trial }>(`trials/${id}`, topics, false, REST_MS);
  return (
    <Loaded answer={answer} shape="chart">
      {({ trial }) => <Tab tab={tab} trial={trial} experiment={experiment} topics={topics} />}
    </Loaded>
  );
}

/** Redirects `/trials/7`, from notes and links, to the page of its experiment. */
export function TrialAlone() {
  const id = Number(useParams().trial);
  const answer = useData<{ trial: Trial }>(`trials/${id}`);
  return (
    <Loaded answer={answer}>{({ trial }) => <Navigate to={`/experiments/${trial.experimentId}/trials/${id}/overview`} replace />}</Loaded>
  );
}

function Head({ trial, experiment, tab }: { trial: Trial; experiment?: Experiment; tab: string }) {
  const why = useWhy(trial);
  const place = usePlaceOf(trial, experiment);
  const failing = trial.state === "STATE_ERROR";
  const narrow = useNarrow();
  usePlace({
    crumbs: [
      { name: "Experiments", to: "/experiments" },
      ...(experiment?.projectName ? [{ name: experiment.projectName, to: `/projects/${experiment.projectId}/experiments` }] : []),
      { name: `${trial.experimentId} ${experiment?.name ?? ""}`, to: `/experiments/${trial.experimentId}/overview` },
      { name: `Trial ${trial.id}` },
    ],
    title: `${failing ? "Error · " : ""}Trial ${trial.id} · ${experiment?.name ?? trial.experimentId}`,
  });
  return (
    <>
      <PageHead
        title={`Trial ${trial.id}`}
        state={place.stopped ? "STOPPED" : trial.state}
        beside={<Beside trial={trial} place={place} />}
        facts={[
          // A narrow screen has no room for the path to this page.
          narrow && experiment && (
            <Link key="of" className="link" to={`/experiments/${experiment.id}/overview`}>
              {experiment.id} {experiment.name}
            </Link>
          ),
          ...place.words,
          <span key="at">
            started <Time at={trial.startTime} />
          </span>,
          trial.warmStartCheckpointUuid && <span key="from">began from checkpoint {trial.warmStartCheckpointUuid.slice(0, 8)}</span>,
          trial.stateReason && !failing && STANDS.test(trial.state) && trial.stateReason !== RAN_THROUGH && (
            <Cut key="why" width={460}>
              {trial.stateReason}
            </Cut>
          ),
        ]}
        actions={<Acts trial={trial} experiment={experiment} log={why?.to ?? logOf(trial)} place={place} />}
      />
      {/* The log opens at its cause. */}
      {failing && tab !== "logs" && <FailedNote why={why} reason={trial.stateReason} />}
    </>
  );
}

function Beside({ trial, place }: { trial: Trial; place: Place }) {
  const navigate = useNavigate();
  const { tab = "overview" } = useParams();
  const step = (id: number | undefined, icon: ReactNode, label: string, keys: string) => (
    <IconButton
      icon={icon}
      label={label}
      keys={keys}
      not={id === undefined ? "There is none" : undefined}
      onClick={() => navigate(`/experiments/${trial.experimentId}/trials/${id}/${tab}`)}
    />
  );
  return (
    <>
      {place.rank === 1 && place.of > 1 && <Tag kind="best">{`best of ${place.of.toLocaleString("en")}`}</Tag>}
      {place.of > 1 && step(place.before, <ChevronUp />, "Previous trial", "[")}
      {place.of > 1 && step(place.after, <ChevronDown />, "Next trial", "]")}
    </>
  );
}

function Acts({ trial, experiment, log, place }: { trial: Trial; experiment?: Experiment; log: string; place: Place }) {
  const [going, setGoing] = useState(false);
  const change = useChange();
  const rights = useRights();
  const over = isOver(trial.state);
  const kill = () =>
    ask({
      title: `Kill trial ${trial.id}?`,
      text: "It stops immediately. Work since its last checkpoint is lost. The experiment continues.",
      verb: "Kill",
      icon: <X />,
      danger: true,
    }).then((yes) =>
      yes
        ? change
            .mutateAsync({ method: "POST", path: `trials/${trial.id}/kill` })
            .then(() => toast({ text: `Killed trial ${trial.id}` }), failed)
        : undefined,
    );
  const others = place.best.filter((id) => id !== trial.id).slice(0, 2);
  const not = !over ? unended(trial.state) : trial.checkpointCount ? undefined : "has no checkpoint";
  const items = [
    {
      name: "Continue trial",
      icon: <StepForward />,
      not: experiment ? not || rights("create", experiment) : "loading",
      act: () => setGoing(true),
    },
    null,
    {
      name: "Kill",
      icon: <X />,
      danger: true,
      not: over ? "has ended" : experiment && rights("control", experiment),
      act: () => void kill(),
    },
  ];
  useActionsHere(NO_ACTIONS);
  return (
    <>
      {others.length > 0 && (
        <LinkButton to={`/experiments/compare?t=${[trial.id, ...others].join(",")}`} icon={<Layers />} tip="With the best others" keys="C">
          Compare
        </LinkButton>
      )}
      <LinkButton kind="primary" to={log} icon={<SquareTerminal />}>
        {trial.state === "STATE_ERROR" ? "Open log at the cause" : "Open log"}
      </LinkButton>
      <Menu label="More actions" kind="plain" small={false} action="more" items={items} />
      {going && experiment && <Continue experiment={experiment} trial={trial} onClose={() => setGoing(false)} />}
    </>
  );
}
const NO_ACTIONS: never[] = [];

function Tab({ tab, trial, experiment, topics }: { tab: string; trial: Trial; experiment?: Experiment; topics: string[] }) {
  switch (tab) {
    case "overview":
      return <TrialOverview trial={trial} experiment={experiment} topics={topics} />;
    case "hyperparameters":
      return <Hyperparameters trial={trial} />;
    case "metrics":
      return (
        <>
          <Summaries trial={trial} />
          <Workloads trial={trial} topics={topics} />
        </>
      );
    case "checkpoints":
      return <Checkpoints of={`trials/${trial.id}`} topics={topics.slice(0, 1)} owned={experiment} />;
    case "profiler":
      return <Profiler trial={trial} topics={topics.slice(1)} />;
    case "logs":
      return <Logs source={`trials/${trial.id}`} command={`det trial logs ${trial.id}`} failed={stateName(trial.state) === "ERROR"} />;
    case "story":
      return <Story kind="trial" id={trial.id} topic={`trial.${trial.id}`} />;
    default:
      return <Navigate to={`/experiments/${trial.experimentId}/trials/${trial.id}/overview`} replace />;
  }
}

function Hyperparameters({ trial }: { trial: Trial }) {
  const values = Object.entries(flat(trial.hparams));
  if (!values.length) return <Empty title="This trial has no hyperparameters">Its configuration has none.</Empty>;
  return (
    <Card title="Hyperparameters" count={values.length}>
      <table className="pairs-of" aria-label="Hyperparameters">
        <tbody>
          {values.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <Copyable text={typeof value === "string" ? value : JSON.stringify(value)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Profiler({ trial, topics }: { trial: Trial; topics: string[] }) {
  const curves = useCurves([trial]);
  return (
    <Board
      of="machine"
      trials={curves}
      names={namesOf(trial)}
      searched=""
      smaller={false}
      topics={topics}
      none={
        <Empty title="This trial is not profiled" command="profiling: {enabled: true}">
          Turn it on in the configuration.
        </Empty>
      }
    />
  );
}
