import { Link, useSearchParams } from "react-router";

import { query } from "../api/client";
import { useData } from "../api/data";
import type { User } from "../api/types";
import { Card, Empty, Loaded } from "../parts/basics";
import { exact } from "../parts/format";

interface Entry {
  position: number;
  time: string;
  username: string;
  event: string;
  about: string;
  what: string;
  reason: string;
}

/** What the names of events begin with, in words. */
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

/** Who did what, the newest first; the address holds what is looked at. */
export function Audit() {
  const [asked, ask] = useSearchParams();
  const of = (name: string) => asked.get(name) ?? "";
  const wanted = {
    users: of("user"),
    event: of("kind"),
    about: of("about").trim(),
    since: instant(of("since")),
    until: instant(of("until")),
  };
  const found = useData<{ entries: Entry[]; more: boolean }>(
    `master/audit${query({ ...wanted, before: of("before"), limit: EACH })}`,
    [],
    true,
  );
  const change = (name: string, value: string) =>
    ask((known) => {
      const next = new URLSearchParams(known);
      // Another question begins with its newest answers.
      next.delete("before");
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  return (
    <>
      <h1>Audit</h1>
      <Filters of={of} change={change} />
      <Card>
        <Loaded found={found}>
          {({ entries, more }) => (
            <>
              {entries.length ? <Entries entries={entries} /> : <Empty command="det master audit">Nothing fits.</Empty>}
              <p className="controls">
                {of("before") && (
                  <button type="button" onClick={() => change("before", "")}>
                    Newest
                  </button>
                )}
                {more && (
                  <button type="button" onClick={() => change("before", String(entries.at(-1)!.position))}>
                    Older
                  </button>
                )}
                <a href={`/api/v1/master/audit/export${query({ ...wanted, format: "csv" })}`}>All of it as CSV</a>
              </p>
            </>
          )}
        </Loaded>
      </Card>
    </>
  );
}

function Filters({ of, change }: { of: (name: string) => string; change: (name: string, value: string) => void }) {
  const users = useData<{ users: User[] }>("users", ["users"]);
  return (
    <div className="controls">
      <label>
        user{" "}
        <select value={of("user")} onChange={(event) => change("user", event.target.value)}>
          <option value="">everybody</option>
          {(users.data?.users ?? []).map((user) => (
            <option key={user.id}>{user.username}</option>
          ))}
        </select>
      </label>
      <label>
        kind{" "}
        <select value={of("kind")} onChange={(event) => change("kind", event.target.value)}>
          {KINDS.map(([prefix, words]) => (
            <option key={prefix} value={prefix}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label>
        thing{" "}
        <input type="search" placeholder="experiment 7" value={of("about")} onChange={(event) => change("about", event.target.value)} />
      </label>
      {["since", "until"].map((name) => (
        <label key={name}>
          {name} <input type="datetime-local" value={of(name)} onChange={(event) => change(name, event.target.value)} />
        </label>
      ))}
    </div>
  );
}

const Entries = ({ entries }: { entries: Entry[] }) => (
  <div className="scroll">
    <table aria-label="Audit">
      <thead>
        <tr>
          <th>Time</th>
          <th>User</th>
          <th>What</th>
          <th>Why</th>
          <th>Thing</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((one) => (
          <tr key={one.position}>
            <td>
              <Link to={`/system/events?event=${one.position}`} title={`event ${one.position}: ${one.event}`}>
                <time dateTime={one.time}>{exact(one.time)}</time>
              </Link>
            </td>
            <td>{one.username}</td>
            <td className="words">{one.what}</td>
            <td className="words">{one.reason}</td>
            <td>
              <Thing name={one.about} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

function Thing({ name }: { name: string }) {
  const [kind = "", id] = name.split(" ");
  if (PAGES[kind]) return <Link to={`${PAGES[kind]}/${id}`}>{name}</Link>;
  // What is known by a long id is looked up by it, not read.
  return <span title={name}>{name.length > LONG ? `${name.slice(0, LONG)}…` : name}</span>;
}

/** What a field of local time says, as the API takes it. */
function instant(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}
