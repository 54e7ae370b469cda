import { CircleCheck } from "lucide-react";
import { useSearchParams } from "react-router";

import { useData } from "../api/data";
import { type Reason, useHealth } from "../api/health";
import { exact } from "../parts/format";
import { Card } from "../ui/card";
import { Figure, Figures } from "../ui/figures";
import { PageHead, usePlace } from "../ui/page";
import { StateIcon } from "../ui/state";
import { Empty, Loaded } from "../ui/status";
import { type Column, Table } from "../ui/table";
import { Views } from "../ui/tabs";
import { Copyable } from "../ui/text";
import { Explorer } from "./experiment/story";

/** The operator's window: every event of the cluster, the newest first, and how the platform is. */
export function Events() {
  const [params, setParams] = useSearchParams();
  const position = params.get("event");
  const health = params.get("view") === "health";
  usePlace({ crumbs: [{ name: "Events" }, ...(health ? [{ name: "Health" }] : [])] });
  return (
    <>
      <PageHead title="Events" beside="what was decided, by whom and why" />
      <Views
        name="Views"
        value={health ? "health" : "events"}
        views={[
          { id: "events", name: "Events" },
          { id: "health", name: "Health" },
        ]}
        onChange={(id) => setParams(id === "health" ? { view: id } : {}, { replace: true })}
      />
      {health ? (
        <Health />
      ) : (
        <>
          {position && <One position={position} />}
          <Explorer kind="cluster" id="" topic="cluster" />
        </>
      )}
    </>
  );
}

/** An event that somebody linked to may be far back. */
function One({ position }: { position: string }) {
  const found = useData<{ subject: string; record: unknown; steps: { what: string }[] }>(`events/${position}`);
  return (
    <Card title={`Event ${position}`}>
      <Loaded found={found}>
        {({ record, steps }) => (
          <div className="stack">
            <p>{steps.map((step) => step.what).join(" ← ")}</p>
            <pre className="code" tabIndex={0}>
              {JSON.stringify(record, null, 2)}
            </pre>
          </div>
        )}
      </Loaded>
    </Card>
  );
}

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
  since: string;
}

const WORDS: Record<string, string> = { up: "Well", degraded: "Something is wrong", down: "Nothing new is decided" };

const REASONS: Column<Reason>[] = [
  { id: "what", head: "What is wrong", name: true, wrap: true, cell: (one) => one.message },
  { id: "program", head: "Told by", width: 130, cell: (one) => one.program, value: (one) => one.program },
  { id: "since", head: "Since", width: 170, cell: (one) => exact(one.since), value: (one) => one.since },
  { id: "action", head: "What to do", width: 420, wrap: true, cell: (one) => one.action },
];
const PARKED: Column<Parked>[] = [
  { id: "about", head: "About", name: true, cell: (one) => one.about, value: (one) => one.about },
  { id: "program", head: "Held by", width: 130, cell: (one) => one.program, value: (one) => one.program },
  { id: "why", head: "Why", width: 420, wrap: true, cell: (one) => one.message },
  { id: "since", head: "Since", width: 170, cell: (one) => exact(one.since), value: (one) => one.since },
];

const SIGNS: Record<string, string> = { up: "COMPLETED", degraded: "PAUSED" };

function Health() {
  const { health } = useHealth();
  const report = useData<Report>("master/health", ["cluster"], true);
  const parked = useData<{ parked: Parked[] }>("master/parked", ["cluster"]);
  const reasons = health?.reasons ?? [];
  const parts = Object.entries(report.data?.parts ?? {});
  const held = parked.data?.parked ?? [];
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
      <Card title="Conditions" count={reasons.length} flush>
        {reasons.length ? (
          <Table name="Conditions" rows={reasons} id={(one) => `${one.condition} ${one.about} ${one.program}`} columns={REASONS} />
        ) : (
          <Empty icon={<CircleCheck className="l" />} title="Nothing is wrong">
            Anything wrong is shown on every page: what, since when, and what to do.
          </Empty>
        )}
      </Card>
      {held.length > 0 && (
        <Card title="Parked decisions" count={held.length} flush>
          <Table name="Parked decisions" rows={held} id={(one) => `${one.program} ${one.about} ${one.since}`} columns={PARKED} />
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
      <p className="ink3 sm more-of">
        In a terminal: <Copyable text="det master health" /> <Copyable text="det master parked" />{" "}
        <Copyable text="det master logs --follow" />
      </p>
    </>
  );
}
