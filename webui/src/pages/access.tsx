import { type FormEvent, useState } from "react";

import { useChange, useData } from "../api/data";
import { Card, Copyable, Empty, Failure, Loaded, Time } from "../parts/basics";
import { Popup } from "../parts/popup";
import { Rows } from "../parts/rows";

interface Session {
  id: string;
  openedAt: string;
  expiresAt: string;
  address: string;
  client: string;
  current: boolean;
}

interface Token {
  id: string;
  name: string;
  scope: "all" | "read";
  createdAt: string;
  expiry: string;
}

/** Where somebody is logged in; each can be ended from here. */
export function Sessions({ user }: { user: number }) {
  const path = `users/${user}/sessions`;
  const found = useData<{ sessions: Session[] }>(path, ["access"]);
  const change = useChange();
  const end = (id: string) => change.mutate({ method: "DELETE", path: id ? `${path}/${id}` : path });
  return (
    <Card title="Where you are logged in">
      {change.error ? <Failure error={change.error} /> : null}
      <Loaded found={found}>
        {({ sessions }) => (
          <>
            <Rows
              name="Sessions"
              rows={sessions}
              id={(one) => one.id}
              columns={[
                { head: "Since", cell: (one) => <Time at={one.openedAt} /> },
                { head: "Ends, if not used", cell: (one) => <Time at={one.expiresAt} /> },
                { head: "From", cell: (one) => one.address },
                { head: "With", cell: (one) => one.client },
              ]}
              actions={(one) =>
                one.current ? (
                  "this one"
                ) : (
                  <button type="button" onClick={() => end(one.id)}>
                    Log out there
                  </button>
                )
              }
            />
            {sessions.length > 1 && (
              <button type="button" onClick={() => end("")}>
                Log out everywhere else
              </button>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** What programs show that act for somebody. A token is shown when it is made, and never again. */
export function Tokens() {
  const found = useData<{ tokenInfo: Token[] }>("tokens", ["access"]);
  const [made, setMade] = useState("");
  const make = useChange((answer) => setMade(answer.token));
  const change = useChange();
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const body = { name: form.get("name"), scope: form.get("scope"), lifespan: `${form.get("days")}d` };
    make.mutate({ method: "POST", path: "tokens", body });
    event.currentTarget.reset();
  };
  return (
    <Card title="API tokens">
      {change.error ? <Failure error={change.error} /> : null}
      <Loaded found={found}>
        {({ tokenInfo }) =>
          tokenInfo.length ? (
            <Rows
              name="API tokens"
              rows={tokenInfo}
              id={(one) => one.id}
              columns={[
                { head: "Name", cell: (one) => one.name },
                { head: "May", cell: (one) => (one.scope === "read" ? "look only" : "do what you may") },
                { head: "Made", cell: (one) => <Time at={one.createdAt} /> },
                { head: "Ends", cell: (one) => <Time at={one.expiry} /> },
              ]}
              actions={(one) => (
                <button type="button" onClick={() => change.mutate({ method: "DELETE", path: `tokens/${one.id}` })}>
                  Revoke
                </button>
              )}
            />
          ) : (
            <Empty command="det token create NAME">There are none. A program that shows one acts for you.</Empty>
          )
        }
      </Loaded>
      <Popup name="New API token">
        <form className="form" onSubmit={save}>
          <label>
            What it is for
            <input name="name" required autoComplete="off" />
          </label>
          <label>
            It may
            <select name="scope">
              <option value="all">do what you may</option>
              <option value="read">look only</option>
            </select>
          </label>
          <label>
            Days until it ends
            <input name="days" type="number" min="1" max="366" defaultValue="30" required />
          </label>
          <button type="submit">Make</button>
          {make.error ? <Failure error={make.error} /> : null}
          {made && (
            <p role="status">
              It is not shown again: <Copyable text={made} />
            </p>
          )}
        </form>
      </Popup>
    </Card>
  );
}
