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
export function tabTitle(one: Pick<Experiment, "name" | "state" | "progress" | "id">): string {
  if (one.state === "STATE_ERROR") return `Error · ${one.id} ${one.name}`;
  if (isOver(one.state) || one.progress === null) return `${one.id} ${one.name}`;
  return `${Math.round(one.progress * 100)} % · ${one.name}`;
}

/** Whether the reason adds to the state: who stopped it, or what it waits for. */
const tells = (one: Experiment) =>
  Boolean(one.stateReason) &&
  !["STATE_ERROR", "STATE_COMPLETED", "STATE_RUNNING"].includes(one.state) &&
  one.stateReason !== `submitted by ${one.username}`;

export function Head({ one, trials, tab }: { one: Experiment; trials: Trial[]; tab: string }) {
  const failed = one.state === "STATE_ERROR" ? firstFailed(trials) : undefined;
  const children =
    useData<{ experiments: { experiment: Experiment }[] }>(CHILDREN(one.id), ["experiments"], false, REST_MS).data?.experiments ?? [];
  const why = useWhy(failed);
  const cause = why?.to ?? (failed ? logOf(failed) : null);
  usePlace({
    crumbs: [
      { name: "Experiments", to: "/experiments" },
      ...(one.projectName ? [{ name: one.projectName, to: `/projects/${one.projectId}/experiments` }] : []),
      { name: `${one.id} ${one.name}` },
    ],
    title: tabTitle(one),
  });
  const actions = useActs(one, trials, one.state === "STATE_ERROR" ? (cause ?? `/experiments/${one.id}/logs`) : null);
  return (
    <>
      <PageHead
        title={one.name}
        state={shownState(one)}
        tags={[...one.labels, ...(one.archived ? ["archived"] : [])]}
        tagged={<EditTags one={one} />}
        facts={[
          one.description && (
            <Cut key="said" width={460}>
              {one.description}
            </Cut>
          ),
          <span key="who">
            <Avatar small name={one.username} /> {one.username}
          </span>,
          <span key="at">
            submitted <Time at={one.startTime} />
          </span>,
          one.forkedFrom || children.length ? <Kin key="kin" one={one} led={children} /> : null,
          tells(one) && one.state !== WAITS && (
            <Cut key="why" width={420}>
              {one.stateReason}
            </Cut>
          ),
        ]}
        actions={actions}
      />
      {tells(one) && one.state === WAITS && (
        <Note
          kind={one.canStart === false ? "warn" : "info"}
          role="status"
          action={
            <LinkButton small to={`/resourcepool/${encodeURIComponent(one.resourcePool)}`}>
              Open the queue
            </LinkButton>
          }
        >
          <b className="b">{one.canStart === false ? "It cannot start." : "It waits."}</b> {sentence(one.stateReason)}
        </Note>
      )}
      {/* The log opens at its cause. */}
      {one.state === "STATE_ERROR" && tab !== "logs" && (
        <FailedNote
          why={why}
          trial={trials.length > 1 ? failed?.id : undefined}
          reason={(trials.length === 1 && failed?.stateReason) || one.stateReason}
        />
      )}
    </>
  );
}

/** What it was forked from, and what was forked from it. */
function Kin({ one, led }: { one: Experiment; led: { experiment: Experiment }[] }) {
  const source = one.config.searcher?.source_trial_id as number | null | undefined;
  const link = (id: number) => (
    <Link key={id} className="link" to={`/experiments/${id}/overview`}>
      {id}
    </Link>
  );
  return (
    <span>
      <GitFork className="s" />{" "}
      {one.forkedFrom && (
        <>
          {source ? "continued from" : "forked from"} {link(one.forkedFrom)}
          {source ? (
            <>
              , <Link className="link" to={`/trials/${source}`}>{`trial ${source}`}</Link>
            </>
          ) : null}
        </>
      )}
      {one.forkedFrom && led.length > 0 && " · "}
      {led.length > 0 && (
        <>
          led to {led.slice(0, 3).map(({ experiment }, at) => [at > 0 && ", ", link(experiment.id)])}
          {led.length > 3 && ` and ${led.length - 3} more`}
        </>
      )}
    </span>
  );
}
