import { GitFork } from "lucide-react";
import { Link } from "react-router";

import { useData } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { isOver, sentence, shownState } from "../../parts/format";
import { LinkButton } from "../../ui/button";
import { Note } from "../../ui/card";
import { PageHead, usePlace } from "../../ui/page";
import { Avatar, Cut, Time } from "../../ui/text";
import { useActs } from "./acts";
import { EditTags } from "./tags";
import { firstFailed, logOf, useWhy } from "./cause";
import { FailedNote } from "./failed";

const REST_MS = 2000;
const WAITS = "STATE_QUEUED";

const CHILDREN = (id: number) =>
  `experiments-search?lean=true&limit=20&sort=id%3Dasc&filter=${encodeURIComponent(JSON.stringify({ filterGroup: { kind: "field", columnName: "forkedFrom", operator: "=", value: id } }))}`;

/** Title of the browser tab: the progress, or that the experiment failed. */
export function tabTitle(pick: Pick<Experiment, "name" | "state" | "progress" | "id">): string {
  if (pick.state === "STATE_ERROR") return `Error · ${pick.id} ${pick.name}`;
  if (isOver(pick.state) || pick.progress === null) return `${pick.id} ${pick.name}`;
  return `${Math.round(pick.progress * 100)} % · ${pick.name}`;
}

/** Whether the reason adds to the state: who stopped it, or what it waits for. */
const tells = (experiment: Experiment) =>
  Boolean(experiment.stateReason) &&
  !["STATE_ERROR", "STATE_COMPLETED", "STATE_RUNNING"].includes(experiment.state) &&
  experiment.stateReason !== `submitted by ${experiment.username}`;

export function Head({ experiment, trials, tab }: { experiment: Experiment; trials: Trial[]; tab: string }) {
  const failed = experiment.state === "STATE_ERROR" ? firstFailed(trials) : undefined;
  const children =
    useData<{ experiments: { experiment: Experiment }[] }>(CHILDREN(experiment.id), ["experiments"], false, REST_MS).data?.experiments ??
    [];
  const why = useWhy(failed);
  const cause = why?.to ?? (failed ? logOf(failed) : null);
  usePlace({
    crumbs: [
      { name: "Experiments", to: "/experiments" },
      ...(experiment.projectName ? [{ name: experiment.projectName, to: `/projects/${experiment.projectId}/experiments` }] : []),
      { name: `${experiment.id} ${experiment.name}` },
    ],
    title: tabTitle(experiment),
  });
  const actions = useActs(experiment, trials, experiment.state === "STATE_ERROR" ? (cause ?? `/experiments/${experiment.id}/logs`) : null);
  return (
    <>
      <PageHead
        title={experiment.name}
        state={shownState(experiment)}
        tags={[...experiment.labels, ...(experiment.archived ? ["archived"] : [])]}
        tagged={<EditTags experiment={experiment} />}
        facts={[
          experiment.description && (
            <Cut key="description" width="clamp(460px, 42vw, 860px)">
              {experiment.description}
            </Cut>
          ),
          <span key="who">
            <Avatar small name={experiment.username} /> {experiment.username}
          </span>,
          <span key="at">
            submitted <Time at={experiment.startTime} />
          </span>,
          experiment.forkedFrom || children.length ? <Kin key="kin" child={experiment} led={children} /> : null,
          tells(experiment) && experiment.state !== WAITS && (
            <Cut key="why" width={420}>
              {experiment.stateReason}
            </Cut>
          ),
        ]}
        actions={actions}
      />
      {tells(experiment) && experiment.state === WAITS && (
        <Note
          kind={experiment.canStart === false ? "warn" : "info"}
          role="status"
          action={
            <LinkButton small to={`/resourcepool/${encodeURIComponent(experiment.resourcePool)}`}>
              Open the queue
            </LinkButton>
          }
        >
          <b className="b">{experiment.canStart === false ? "It cannot start." : "It waits."}</b> {sentence(experiment.stateReason)}
        </Note>
      )}
      {/* The log opens at its cause. */}
      {experiment.state === "STATE_ERROR" && tab !== "logs" && (
        <FailedNote
          why={why}
          trial={trials.length > 1 ? failed?.id : undefined}
          reason={(trials.length === 1 && failed?.stateReason) || experiment.stateReason}
        />
      )}
    </>
  );
}

/** What it was forked from, and what was forked from it. */
function Kin({ child, led }: { child: Experiment; led: { experiment: Experiment }[] }) {
  const source = child.config.searcher?.source_trial_id as number | null | undefined;
  const link = (id: number) => (
    <Link key={id} className="link" to={`/experiments/${id}/overview`}>
      {id}
    </Link>
  );
  return (
    <span>
      <GitFork className="s" />{" "}
      {child.forkedFrom && (
        <>
          {source ? "continued from" : "forked from"} {link(child.forkedFrom)}
          {source ? (
            <>
              , <Link className="link" to={`/trials/${source}`}>{`trial ${source}`}</Link>
            </>
          ) : null}
        </>
      )}
      {child.forkedFrom && led.length > 0 && " · "}
      {led.length > 0 && (
        <>
          led to {led.slice(0, 3).map(({ experiment }, at) => [at > 0 && ", ", link(experiment.id)])}
          {led.length > 3 && ` and ${led.length - 3} more`}
        </>
      )}
    </span>
  );
}
