/** Health of the platform for operators: what is wrong, which messages were skipped, where the log is stored. */

import { useData } from "../api/data";
import { type Reason, useHealth } from "../api/health";
import { exact, many, size } from "../parts/format";
import { Card, Facts } from "../ui/card";
import { Figure, Figures } from "../ui/figures";
import { StateIcon } from "../ui/state";
import { Loaded } from "../ui/status";
import { type Column, Table } from "../ui/table";
import { Copyable, Cut } from "../ui/text";
import { Databases } from "./databases";
import { Positions } from "./positions";
import { Retry } from "./retry";
import { type Standing as StandingService, StandingServices } from "./standing";

interface Report {
  status: string;
  position: number;
  time: string;
  parts: Record<string, unknown>;
}
interface Parked {
  about: string;
  program: string;
  message: string;
  /** The service's own words. */
  error?: string;
  since: string;
}

/** A message of the log that cannot be decoded; every reader skips it. */
interface Unreadable {
  position: number;
  subject: string;
  reason: string;
}
interface Passed {
  unreadable: Unreadable[];
  /** There are older ones. */
  more: boolean;
  parked: Parked[];
  standing?: StandingService[];
}
interface Standing {
  /** Empty if there is no archive. */
  place: string;
  segments: number;
  bytes: number;
  archived: number;
  first: number;
  last: number;
}

const WORDS: Record<string, string> = { up: "Healthy", degraded: "Something is wrong", down: "Nothing new is decided" };

const REASONS: Column<Reason>[] = [
  { id: "what", head: "What is wrong", name: true, wrap: true, cell: (reason) => reason.message },
  { id: "program", head: "Reported by", width: 130, cell: (reason) => reason.program, value: (reason) => reason.program },
  { id: "since", head: "Since", width: 170, cell: (reason) => exact(reason.since), value: (reason) => reason.since },
  { id: "action", head: "What to do", width: 420, wrap: true, cell: (reason) => reason.action },
];
const PARKED: Column<Parked>[] = [
  { id: "about", head: "About", name: true, cell: (parked) => parked.about, value: (parked) => parked.about },
  { id: "program", head: "Held by", width: 130, cell: (parked) => parked.program, value: (parked) => parked.program },
  {
    id: "why",
    head: "Why",
    width: 420,
    wrap: true,
    cell: (parked) => (parked.error ? `${parked.message}: ${parked.error}` : parked.message),
  },
  { id: "since", head: "Since", width: 170, cell: (parked) => exact(parked.since), value: (parked) => parked.since },
];

const UNREADABLE: Column<Unreadable>[] = [
  {
    id: "position",
    head: "Position",
    width: 110,
    num: true,
    cell: (unreadable) => unreadable.position.toLocaleString("en"),
    value: (unreadable) => unreadable.position,
    small: true,
  },
  {
    id: "subject",
    head: "Subject",
    name: true,
    cell: (unreadable) => <Cut>{unreadable.subject}</Cut>,
    value: (unreadable) => unreadable.subject,
  },
  { id: "reason", head: "Why", width: 420, wrap: true, cell: (unreadable) => unreadable.reason },
];

const SIGNS: Record<string, string> = { up: "COMPLETED", degraded: "PAUSED" };

export function Health() {
  const { health } = useHealth();
  const report = useData<Report>("master/health", ["cluster"], true);
  const passed = useData<Passed>("master/parked", ["cluster"]);
  const reasons = health?.reasons ?? [];
  const parts = Object.entries(report.data?.parts ?? {});
  const held = passed.data?.parked ?? [];
  const standing = passed.data?.standing ?? [];
  const unreadable = passed.data?.unreadable ?? [];
  return (
    <>
      <Figures>
        <Figure
          name="The cluster"
          value={WORDS[health?.status ?? ""] ?? "…"}
          bad={health?.status === "down"}
          note={reasons.length ? `${reasons.length} ${reasons.length === 1 ? "thing is" : "things are"} wrong` : "nothing is wrong"}
        />
        <Figure
          name="Read up to"
          value={report.data?.position.toLocaleString("en") ?? "…"}
          unit="events"
          note={report.data && `as of ${exact(report.data.time)}`}
        />
        <Figure
          name="Parked"
          value={held.length}
          unit={held.length === 1 ? "decision" : "decisions"}
          bad={held.length > 0}
          note={held.length ? "each with its reason below" : "everything could be decided"}
        />
        <Figure
          name="Parts that work"
          value={parts.filter(([, state]) => state === "up").length}
          unit={`of ${parts.length}`}
          bad={parts.some(([, state]) => state === "down")}
          note={
            parts
              .filter(([, state]) => state !== "up")
              .map(([name, state]) => `${name} ${state}`)
              .join(", ") || "all are up"
          }
        />
      </Figures>
      {reasons.length > 0 && (
        <Card title="Conditions" count={reasons.length} flush>
          <Table
            name="Conditions"
            rows={reasons}
            id={(reason) => `${reason.condition} ${reason.about} ${reason.program}`}
            columns={REASONS}
          />
        </Card>
      )}
      {standing.length > 0 && <StandingServices rows={standing} />}
      {held.length > 0 && (
        <Card title="Parked decisions" count={held.length} flush>
          <Table
            name="Parked decisions"
            rows={held}
            id={(parked) => `${parked.program} ${parked.about} ${parked.since}`}
            columns={PARKED}
            actWidth={96}
            act={(parked) => <Retry program={parked.program} confirmation={`The ${parked.program} retries what it parked`} />}
          />
        </Card>
      )}
      {unreadable.length > 0 && (
        <Card
          title="Messages that cannot be read"
          count={unreadable.length}
          more={passed.data?.more ? "there are older ones: det master parked" : "every service skips them and continues"}
          flush
        >
          <Table
            name="Messages that cannot be read"
            rows={unreadable}
            id={(unreadable) => unreadable.position}
            columns={UNREADABLE}
            store="unreadable"
          />
        </Card>
      )}
      <Card title="Parts">
        <div className="parts">
          {parts.map(([name, state]) => (
            <span key={name} className="part">
              <StateIcon state={SIGNS[String(state)] ?? "ERROR"} /> <b className="m">{name}</b>{" "}
              <span className="ink3">{String(state)}</span>
            </span>
          ))}
        </div>
      </Card>
      <Positions />
      <Databases />
      <Log />
      <p className="ink3 sm more-of">
        In a terminal: <Copyable text="det master health" /> <Copyable text="det master parked" />{" "}
        <Copyable text="det master logs --follow" />
      </p>
    </>
  );
}

const events = (value: number) => many(value, "event");

/** Where the events are stored, and how to make sure that they are never lost. */
function Log() {
  const archive = useData<Standing>("master/archive", ["cluster"]);
  return (
    <Card title="The log">
      <Loaded answer={archive}>
        {({ place, segments, bytes, archived, first, last }) => (
          <div className="stack">
            <Facts
              facts={[
                [
                  "In the broker",
                  `${events(Math.max(0, last - first + 1))}, ${first.toLocaleString("en")} to ${last.toLocaleString("en")}`,
                ],
                [
                  "In the archive",
                  place
                    ? `${events(archived)} in ${segments === 1 ? "1 segment" : `${segments} segments`}, ${size(bytes)}`
                    : "none: the broker keeps the whole log",
                ],
                ["Place of the archive", place && <Cut key="place">{place}</Cut>],
              ]}
            />
            <p className="ink3 sm more-of">
              Back up while the cluster runs: <Copyable text="det deploy local backup FOLDER --key-file FILE" />
            </p>
          </div>
        )}
      </Loaded>
    </Card>
  );
}
