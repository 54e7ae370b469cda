import { Download, ShieldCheck } from "lucide-react";
import { Link, useSearchParams } from "react-router";

import { query } from "../api/client";
import { useData } from "../api/data";
import type { User } from "../api/types";
import { because, exact, sentence, unnamed } from "../parts/format";
import { Button, LinkButton } from "../ui/button";
import { Card } from "../ui/card";
import { Search, Select } from "../ui/field";
import { PageHead, usePlace } from "../ui/page";
import { Empty, Loaded } from "../ui/status";
import { type Column, Table } from "../ui/table";
import { Avatar } from "../ui/text";
import { SystemViews } from "./system_views";

interface Entry {
  position: number;
  time: string;
  username: string;
  event: string;
  about: string;
  what: string;
  reason: string;
}

/** Words for the prefixes of event names. */
const KINDS: [string, string][] = [
  ["", "everything"],
  ["gateway.session", "logins and log-outs"],
  ["gateway.token", "API tokens"],
  ["gateway.user", "users"],
  ["gateway.workspace", "workspaces"],
  ["gateway.project", "projects"],
  ["gateway.template", "templates"],
  ["searcher.experiment", "experiments"],
  ["searcher.trial", "trials"],
  ["scheduler", "queue, tasks and agents"],
  ["checkpoints", "checkpoints and models"],
];
const EACH = 50;
const LONG = 20;
const PAGES: Record<string, string> = { experiment: "/experiments", trial: "/trials", workspace: "/workspaces" };

/** The audit log: who did what, newest first. The address holds the filters. */
export function Audit() {
  usePlace({ crumbs: [{ name: "Events", to: "/system/events" }, { name: "Audit" }] });
  const [asked, ask] = useSearchParams();
  const of = (name: string) => asked.get(name) ?? "";
  const wanted = {
    users: of("user"),
    event: of("kind"),
    about: of("about").trim(),
    since: instant(of("since")),
    until: instant(of("until")),
  };
  const answer = useData<{ entries: Entry[]; more: boolean }>(
    `master/audit${query({ ...wanted, before: of("before"), limit: EACH })}`,
    [],
    true,
  );
  const change = (name: string, value: string) =>
    ask((params) => {
      const next = new URLSearchParams(params);
      // A new filter starts at its newest entries.
      next.delete("before");
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  return (
    <>
      <PageHead
        title="Audit"
        beside="who did what"
        actions={
          <LinkButton icon={<Download />} href={`/api/v1/master/audit/export${query({ ...wanted, format: "csv" })}`}>
            Export all as CSV
          </LinkButton>
        }
      />
      <SystemViews value="audit" />
      <Filters of={of} change={change} />
      <Loaded answer={answer}>
        {({ entries, more }) => (
          <>
            {entries.length ? (
              <Entries entries={entries} />
            ) : (
              <Card>
                <Empty icon={<ShieldCheck className="l" />} title="No matches." command="det master audit" />
              </Card>
            )}
            <div className="toolbar">
              {of("before") && <Button onClick={() => change("before", "")}>Newest</Button>}
              {more && <Button onClick={() => change("before", String(entries.at(-1)!.position))}>Older</Button>}
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}

function Filters({ of, change }: { of: (name: string) => string; change: (name: string, value: string) => void }) {
  const users = useData<{ users: User[] }>("users", ["users"]);
  return (
    <div className="toolbar sift">
      <Select
        label="User"
        value={of("user")}
        options={[["", "everybody"], ...(users.data?.users ?? []).map((user) => [user.username, user.username] as const)]}
        onChange={(value) => change("user", value)}
      />
      <Select label="Kind" value={of("kind")} options={KINDS} onChange={(value) => change("kind", value)} />
      <Search label="Object" placeholder="experiment 7" value={of("about")} onChange={(value) => change("about", value)} />
      {[
        ["since", "Since"],
        ["until", "Until"],
      ].map(([name, words]) => (
        <label key={name} className="sel-wrap">
          {words}
          <input className="input" type="datetime-local" value={of(name!)} onChange={(event) => change(name!, event.target.value)} />
        </label>
      ))}
    </div>
  );
}

/** The user and the reason have columns of their own. */
function alone({ what, reason, username }: Entry): string {
  const action = reason && what.endsWith(`: ${reason}`) ? what.slice(0, -reason.length - 2) : what;
  return sentence(unnamed(action, username));
}

const COLUMNS: Column<Entry>[] = [
  {
    id: "time",
    head: "Time",
    width: 170,
    small: true,
    under: true,
    cell: (entry) => (
      <Link to={`/system/events?event=${entry.position}`} title={`event ${entry.position}: ${entry.event}`}>
        <time dateTime={entry.time}>{exact(entry.time)}</time>
      </Link>
    ),
  },
  {
    id: "user",
    head: "User",
    width: 140,
    small: true,
    cell: (entry) => (
      <span className="cut" title={entry.username}>
        <Avatar name={entry.username || "?"} plain small />
        {entry.username}
      </span>
    ),
  },
  { id: "what", head: "What", name: true, wrap: true, cell: (entry) => alone(entry) },
  { id: "why", head: "Why", width: 240, wrap: true, cell: (entry) => because(entry.reason, entry.username) },
  { id: "thing", head: "Object", width: 160, cell: (entry) => <Thing name={entry.about} /> },
];

const Entries = ({ entries }: { entries: Entry[] }) => (
  <Table name="Audit" rows={entries} id={(entry) => entry.position} columns={COLUMNS} store="audit" />
);

function Thing({ name }: { name: string }) {
  const [kind = "", id] = name.split(" ");
  if (PAGES[kind]) return <Link to={`${PAGES[kind]}/${id}`}>{name}</Link>;
  // Long ids are for look-ups rather than for reading, so they are shortened.
  return <span title={name}>{name.length > LONG ? `${name.slice(0, LONG)}…` : name}</span>;
}

/** The value of a local time field as an API timestamp. */
function instant(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}
