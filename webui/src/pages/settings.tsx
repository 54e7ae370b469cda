import { type FormEvent, useState } from "react";

import { useChange, useData, useMe } from "../api/data";
import type { User } from "../api/types";
import { Card, Failure, Loaded } from "../parts/basics";
import { KeyTable } from "../shell/help";
import { useDensity, useTheme } from "../shell/look";
import { Popup } from "../parts/popup";
import { Rows } from "../parts/rows";
import { Sessions, Tokens } from "./access";
import { Groups } from "./rights";

export function Settings() {
  const me = useMe();
  return (
    <>
      <h1>Settings</h1>
      <Loaded found={me}>
        {({ user }) => (
          <>
            <Card title="You">
              <Profile user={user} />
              <NewPassword user={user} />
            </Card>
            <Sessions user={user.id} />
            <Tokens />
            <Look />
            <Card title="Keys">
              <KeyTable />
            </Card>
            <Users admin={user.admin} />
            <Groups admin={user.admin} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Profile({ user }: { user: User }) {
  const [done, setDone] = useState("");
  const change = useChange(() => setDone("Saved."));
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    change.mutate({ method: "PATCH", path: `users/${user.id}`, body: { displayName: new FormData(event.currentTarget).get("name") } });
  };
  return (
    <form className="form" onSubmit={save}>
      <label>
        Shown name
        <input name="name" defaultValue={user.displayName} autoComplete="name" />
      </label>
      <button type="submit">Save</button> <span role="status">{done}</span>
      {change.error ? <Failure error={change.error} /> : null}
    </form>
  );
}

/** Sessions from before end, this one too: one signs in anew. */
function NewPassword({ user }: { user: User }) {
  const change = useChange();
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    change.mutate({
      method: "PATCH",
      path: `users/${user.id}`,
      body: { password: new FormData(event.currentTarget).get("password"), isHashed: false },
    });
  };
  return (
    <form className="form" onSubmit={save}>
      <label>
        New password; all sessions end, this one too
        <input name="password" type="password" autoComplete="new-password" required />
      </label>
      <button type="submit">Change password</button>
      {change.error ? <Failure error={change.error} /> : null}
    </form>
  );
}

function Look() {
  const [theme, setTheme] = useTheme();
  const [density, setDensity] = useDensity();
  return (
    <Card title="Look">
      <div className="controls">
        <label>
          Theme
          <select value={theme} onChange={(event) => setTheme(event.target.value as typeof theme)}>
            <option value="">as the system</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
        <label>
          Density
          <select value={density} onChange={(event) => setDensity(event.target.value as typeof density)}>
            <option>compact</option>
            <option>normal</option>
            <option>roomy</option>
          </select>
        </label>
      </div>
    </Card>
  );
}

function Users({ admin }: { admin: boolean }) {
  const found = useData<{ users: User[] }>("users", ["users"]);
  const change = useChange();
  const make = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const body = {
      user: { username: form.get("username"), admin: form.get("admin") === "on", active: true },
      password: form.get("password"),
      isHashed: false,
    };
    change.mutate({ method: "POST", path: "users", body });
    event.currentTarget.reset();
  };
  const patch = (user: User, body: object) => change.mutate({ method: "PATCH", path: `users/${user.id}`, body });
  const not = admin ? "" : "Only administrators may";
  return (
    <Card title="Users">
      {change.error ? <Failure error={change.error} /> : null}
      <Loaded found={found}>
        {({ users }) => (
          <Rows
            name="Users"
            rows={users}
            id={(one) => one.id}
            columns={[
              { head: "ID", num: true, cell: (one) => one.id },
              { head: "User", cell: (one) => one.username },
              { head: "Shown name", cell: (one) => one.displayName },
              { head: "Role", cell: (one) => (one.admin ? "administrator" : "user") },
              { head: "Active", cell: (one) => (one.active ? "yes" : "no") },
            ]}
            actions={(one) => (
              <>
                <button type="button" disabled={!admin} title={not} onClick={() => patch(one, { active: !one.active })}>
                  {one.active ? "Close" : "Open"} account
                </button>
                <button type="button" disabled={!admin} title={not} onClick={() => patch(one, { admin: !one.admin })}>
                  Make {one.admin ? "user" : "administrator"}
                </button>
              </>
            )}
          />
        )}
      </Loaded>
      {admin && (
        <Popup name="New user">
          <form className="form" onSubmit={make}>
            <label>
              User name
              <input name="username" required autoComplete="off" />
            </label>
            <label>
              Password
              <input name="password" type="password" autoComplete="new-password" />
            </label>
            <label>
              <input name="admin" type="checkbox" /> administrator
            </label>
            <button type="submit">Make</button>
          </form>
        </Popup>
      )}
    </Card>
  );
}
