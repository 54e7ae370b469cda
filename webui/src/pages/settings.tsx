import { type FormEvent, useState } from "react";

import { useChange, useData } from "../api/data";
import { Card, Failure, Loaded } from "../parts/basics";
import { useTheme } from "../parts/layout";

interface User {
  id: number;
  username: string;
  displayName: string;
  admin: boolean;
  active: boolean;
}

export function Settings() {
  const me = useData<{ user: User }>("me", ["users"]);
  const users = useData<{ users: User[] }>("users", ["users"]);
  const [theme, setTheme] = useTheme();
  const [done, setDone] = useState("");
  const change = useChange(() => setDone("Saved."));
  const save = (event: FormEvent<HTMLFormElement>, id: number) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    change.mutate({ method: "PATCH", path: `users/${id}`, body: { displayName: form.get("name") } });
  };
  return (
    <>
      <h1>Settings</h1>
      <Card title="You">
        <Loaded found={me}>
          {({ user }) => (
            <form className="form" onSubmit={(event) => save(event, user.id)}>
              <label>
                Shown name
                <input name="name" defaultValue={user.displayName} />
              </label>
              <button type="submit">Save</button> <span role="status">{done}</span>
            </form>
          )}
        </Loaded>
        <label>
          Theme{" "}
          <select value={theme} onChange={(event) => setTheme(event.target.value)}>
            <option value="">as the system</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
        <p className="soft">Another password: det user change-password</p>
        {change.error ? <Failure error={change.error} /> : null}
      </Card>
      <Card title="Users">
        <Loaded found={users}>
          {({ users }) => (
            <table>
              <thead>
                <tr>
                  <th className="num">ID</th>
                  <th>User</th>
                  <th>Shown name</th>
                  <th>Role</th>
                  <th>Active</th>
                </tr>
              </thead>
              <tbody>
                {users.map((user) => (
                  <tr key={user.id}>
                    <td className="num">{user.id}</td>
                    <td>{user.username}</td>
                    <td>{user.displayName}</td>
                    <td>{user.admin ? "administrator" : "user"}</td>
                    <td>{user.active ? "yes" : "no"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </Loaded>
      </Card>
    </>
  );
}
