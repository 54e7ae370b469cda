import { ChevronRight } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useSearchParams } from "react-router";

import { get, query } from "../../api/client";
import { useData } from "../../api/data";
import { actorName, because, count, duration, exact, many, moment, sentence, unnamed } from "../../parts/format";
import { Button } from "../../ui/button";
import { Card, Fold, Note } from "../../ui/card";
import { Select } from "../../ui/field";
import { Empty, Failure, Loaded } from "../../ui/status";
import { Copyable } from "../../ui/text";
import { joined, rowsOf, saidOf } from "./story_rows";
import "./story.css";

export interface Step {
  position: number;
  name: string;
  time: string;
  actor: string;
  what: string;
  reason: string;
  about: { kind: string; id: string };
  because: number[];
}
interface Told {
  state: string;
  waitsFor?: string;
  steps: Step[];
  more: boolean;
}

/** Why it is in its state, how its time was spent, and everything that happened, from the event log. */
export function Story({ kind, id, topic, trials }: { kind: string; id: number | string; topic: string; trials?: number[] }) {
  const why = useData<Told>(`why/${kind}/${id}`, [topic], false, REST_MS);
  return (
    <>
      <Card title="Why it is in this state">
        <Loaded answer={why}>
          {(story) => (
            <>
              {story.waitsFor && <Note kind="warn">{story.waitsFor}</Note>}
              <Steps steps={story.steps} />
            </>
          )}
        </Loaded>
      </Card>
      {kind === "experiment" && <TimelineCard id={Number(id)} topic={topic} />}
      <Explorer kind={kind} id={id} topic={topic} trials={trials} />
    </>
  );
}

const Steps = ({ steps }: { steps: Step[] }) => (
  <ol className="story">
    {steps.map((step) => (
      <li key={step.position}>
        <Moment at={step.time} />
        <Words step={step} />
      </li>
    ))}
  </ol>
);

const Moment = ({ at }: { at: string }) => (
  <time dateTime={at} title={exact(at)}>
    {moment(at)}
  </time>
);

function Words({ step }: { step: Step }) {
  const who = actorName(step.actor);
  const reason = because(step.reason, who);
  return (
    <>
      <span className="said">
        {sentence(unnamed(step.what, who))}
        {reason && <span className="ink2">: {reason}</span>}
      </span>
      <span className="by">{who}</span>
    </>
  );
}

export interface Stretch {
  what: string;
  since: string;
  until: string | null;
  actor: string;
  reason: string;
  position: number;
}
export interface Timeline {
  stretches: Stretch[];
  seconds: Record<string, number>;
}
/** Minimum interval between reads of the log. */
const REST_MS = 1000;
const DID: Record<string, string> = { paused: "paused", waited: "waited for slots", ran: "ran", stopping: "was ending" };

export const took = (stretch: Stretch) => ((stretch.until ? Date.parse(stretch.until) : Date.now()) - Date.parse(stretch.since)) / 1000;

/** Names the person who paused it; pauses by the platform have no name. */
export const describe = (stretch: Stretch) => {
  const by = stretch.what === "paused" && stretch.actor.startsWith("user:") ? ` by ${stretch.actor.slice(5)}` : "";
  return `${DID[stretch.what]}${by} ${duration(took(stretch))}`;
};

const MOST_PARTS = 40;
/** How many stretches are listed at first. */
const FEW = 12;

/** Limits the number of stretches: the shortest are merged into the one before them. */
function parts(stretches: Stretch[]): Stretch[] {
  const all = stretches.map((stretch) => ({ ...stretch }));
  while (all.length > MOST_PARTS) {
    let shortest = 1;
    for (let at = 2; at < all.length; at++) if (took(all[at]!) < took(all[shortest]!)) shortest = at;
    all[shortest - 1]!.until = all[shortest]!.until;
    all.splice(shortest, 1);
  }
  return all;
}

function TimelineCard({ id, topic }: { id: number; topic: string }) {
  const answer = useData<Timeline>(`experiments/${id}/timeline`, [topic], true, REST_MS);
  return (
    <Card title="How its time was spent">
      <Loaded answer={answer}>
        {({ stretches: all, seconds }) => {
          const stretches = worthTelling(all);
          return stretches.length ? (
            <>
              <div className="strip" role="img" aria-label={stretches.map(describe).join("; ")}>
                {parts(stretches).map((part) => (
                  <span
                    key={part.position}
                    className={part.what}
                    style={{ flexGrow: took(part) }}
                    title={`${describe(part)}, from ${exact(part.since)}: ${part.reason}`}
                  />
                ))}
              </div>
              <p className="toolbar sm ink2 sums">
                {longest(seconds).map(([what, sum]) => (
                  <span key={what}>
                    <span className={`key ${what}`} aria-hidden /> {DID[what]} {duration(sum)} in all{" "}
                  </span>
                ))}
              </p>
              <Fold title={`Each of its ${stretches.length} parts`} open={stretches.length <= FEW}>
                <ol className="story">
                  {stretches.map((stretch) => (
                    <li key={stretch.position}>
                      <Moment at={stretch.since} />
                      <span className="said">
                        {sentence(describe(stretch))}
                        {stretch.until ? "" : ", until now"}
                        {stretch.reason && <span className="ink2">: {stretch.reason}</span>}
                      </span>
                    </li>
                  ))}
                </ol>
              </Fold>
            </>
          ) : (
            <Empty>Nothing has happened yet.</Empty>
          );
        }}
      </Loaded>
    </Card>
  );
}

/** Without those of no second, such as a wait for a slot that was free; the last one says what it is now. */
export const worthTelling = (stretches: Stretch[]) =>
  stretches.filter((stretch, at) => at === stretches.length - 1 || Math.round(took(stretch)) > 0);

/** Sums that are worth a word: what took no second only if nothing took longer. */
function longest(seconds: Record<string, number>) {
  const all = Object.entries(seconds);
  const long = all.filter(([, sum]) => sum >= 1);
  return long.length ? long : all;
}

/** Events of one object or of the whole cluster, in log order, each with its cause. */
export function Explorer({
  kind,
  id,
  topic,
  trials,
  missing,
}: {
  kind: string;
  id: number | string;
  topic: string;
  trials?: number[];
  /** Stands above if the event of the link is not in the list. */
  missing?: ReactNode;
}) {
  const [params, setParams] = useSearchParams();
  const [owner, word] = [params.get("owner") ?? "", params.get("kind") ?? ""];
  const trial = params.get("trial") ?? "";
  /** The newest events plus the earlier ones that the user asked for; empty until then. */
  const [held, setHeld] = useState<Step[]>([]);
  /** Position of the very first event, once known. */
  const [start, setStart] = useState(0);
  const [failure, setFailure] = useState<unknown>(null);
  const here = Number(params.get("event") ?? 0);
  const set = (name: string, value: string) => {
    setParams(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
    if (name === "trial" || (name === "owner" && kind === "cluster")) {
      setHeld([]);
      setStart(0);
    }
  };
  const base = kind === "cluster" ? "events" : trial ? `why/trial/${trial}` : `why/${kind}/${id}`;
  const asked = (before?: number, limit = 200) =>
    `${base}${query({ all: kind === "cluster" ? undefined : true, limit, before, owner: kind === "cluster" ? owner : undefined })}`;
  const answer = useData<Told>(asked(), [topic], true, REST_MS);
  const newest = answer.data?.steps;
  // Keeps events that a newer answer no longer includes, since each answer holds only the latest ones.
  useEffect(() => {
    if (newest) setHeld((held) => (held.length ? joined(held, newest) : held));
  }, [newest]);
  const more = async (steps: Step[], limit?: number) => {
    try {
      const older = await get<Told>(asked(steps[0]?.position, limit));
      const all = [...older.steps, ...steps];
      setHeld(all);
      if (!older.more) setStart(all[0]?.position ?? 0);
    } catch (error) {
      setFailure(error);
    }
  };
  // While trials report progress, thousands of the newest events may be one row: the decisions lie before them.
  const fills = useRef({ of: "", left: 0, busy: false });
  useEffect(() => {
    if (!answer.data?.more) return;
    const steps = joined(held, answer.data.steps);
    if (fills.current.of !== base + owner) fills.current = { of: base + owner, left: MOST_FILLS, busy: false };
    const now = fills.current;
    if (now.busy || !now.left || steps[0]?.position === start || rowsOf(steps, here).length >= FEW_ROWS) return;
    fills.current = { ...now, left: now.left - 1, busy: true };
    void more(steps, MOST_EVENTS).finally(() => {
      if (fills.current.of === now.of) fills.current.busy = false;
    });
  });
  const listed = answer.data && joined(held, answer.data.steps).some((step) => step.position === here);
  return (
    <>
      {listed === false && missing}
      <Card
        title="Everything that happened"
        more={
          kind === "cluster" ? (
            <Copyable text="det master logs --follow" />
          ) : (
            <Copyable text={`det why ${trial ? "trial" : kind} ${trial || id} --all`} />
          )
        }
      >
        <Loaded answer={answer}>
          {(story) => {
            const steps = joined(held, story.steps);
            const owners = [...new Set(steps.map((step) => step.name.split(".")[0]!))].sort();
            const kinds = [...new Set(steps.map((step) => step.name))].sort();
            const shown = steps.filter((step) => (!owner || step.name.startsWith(`${owner}.`)) && (!word || step.name === word));
            return (
              <>
                <div className="toolbar sifts">
                  <Choice
                    label="Source"
                    value={owner}
                    values={kind === "cluster" ? OWNERS : owners}
                    onChange={(value) => set("owner", value)}
                  />
                  <Choice label="Kind" value={word} values={kinds} onChange={(value) => set("kind", value)} />
                  {trials && <Choice label="Trial" value={trial} values={trials.map(String)} onChange={(value) => set("trial", value)} />}
                  <span role="status" className="ink3 sm">
                    {shown.length === steps.length
                      ? many(steps.length, "event")
                      : `${count(shown.length)} of ${many(steps.length, "event")}`}
                  </span>
                  {story.more && steps[0]?.position !== start && (
                    <Button small onClick={() => void more(steps)}>
                      Earlier ones
                    </Button>
                  )}
                </div>
                {failure ? <Failure error={failure} /> : null}
                <ol className="story" reversed={kind === "cluster"}>
                  {rowsOf(kind === "cluster" ? shown.toReversed() : shown, here).map((row) =>
                    row.kind === "several" && !word ? (
                      <Several key={`from ${row.key}`} steps={row.steps} onOpen={(position) => set("event", String(position))} />
                    ) : (
                      (row.kind === "one" ? [row.step] : row.steps).map((step) => (
                        <Event
                          key={step.position}
                          step={step}
                          open={step.position === here}
                          onOpen={(open) => open !== (step.position === here) && set("event", open ? String(step.position) : "")}
                        />
                      ))
                    ),
                  )}
                </ol>
              </>
            );
          }}
        </Loaded>
      </Card>
    </>
  );
}

const FEW_ROWS = 20;
/** The most events that one request may ask for. */
const MOST_EVENTS = 1000;
/** How often a page that shows few rows asks for earlier events by itself. */
const MOST_FILLS = 4;
const OWNERS = ["searcher", "scheduler", "metrics", "checkpoints", "gateway", "worker", "trial"];

function Choice({ label, value, values, onChange }: { label: string; value: string; values: string[]; onChange: (value: string) => void }) {
  const options = [...new Set([...values, value])].filter(Boolean).map((option): [string, string] => [option, option]);
  return <Select small label={label} value={value} options={[["", "any"], ...options]} onChange={onChange} />;
}

function Event({ step, open, onOpen }: { step: Step; open: boolean; onOpen: (open: boolean) => void }) {
  return (
    <li className={open ? "here" : ""}>
      <Moment at={step.time} />
      <details open={open} onToggle={(event) => onOpen(event.currentTarget.open)}>
        <summary>
          <ChevronRight />
          <Words step={step} />
        </summary>
        {open && <Detail position={step.position} />}
      </details>
    </li>
  );
}

/** Consecutive progress reports of scripts in one row; each opens as an event of its own. */
function Several({ steps, onOpen }: { steps: Step[]; onOpen: (position: number) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <Moment at={steps[0]!.time} />
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <ChevronRight />
          <span className="said ink2">{saidOf(steps)}</span>
        </summary>
        {open && (
          <ol className="story">
            {steps.map((step) => (
              <Event key={step.position} step={step} open={false} onOpen={(now) => now && onOpen(step.position)} />
            ))}
          </ol>
        )}
      </details>
    </li>
  );
}

interface Whole {
  subject: string;
  record: unknown;
  steps: Step[];
}

function Detail({ position }: { position: number }) {
  const answer = useData<Whole>(`events/${position}`);
  return (
    <Loaded answer={answer}>
      {({ subject, record, steps }) => (
        <>
          {steps.length > 1 ? (
            <>
              <p className="ink3 sm">Caused by</p>
              <div className="chain">
                <Steps steps={steps.slice(1)} />
              </div>
            </>
          ) : (
            <p className="ink3 sm">No earlier event caused it: a person did it, or it was observed.</p>
          )}
          <p className="ink3 sm">
            Event {position} on <code>{subject}</code>, <Link to={`/system/events?event=${position}`}>among all events</Link>
          </p>
          <pre tabIndex={0} className="code">
            {JSON.stringify(record, null, 2)}
          </pre>
        </>
      )}
    </Loaded>
  );
}
