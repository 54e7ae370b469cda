import { KeyRound, ShieldCheck, UserX } from "lucide-react";
import { type FormEvent, useState } from "react";

import { useData } from "../../api/data";
import { useRights } from "../../api/rights";
import type { User } from "../../api/types";
import { ask, Dialog, DialogFoot } from "../../ui/dialog";
import { Check, PasswordField, Search, TextField } from "../../ui/field";
import { Avatar, Tag } from "../../ui/text";
import { useAct } from "./change";
import { Listing } from "./listing";

export function Users() {
  const not = useRights()("administer_users");
  const answer = useData<{ users: User[] }>("users", ["users"]);
  const [wanted, setWanted] = useState("");
  const [making, setMaking] = useState(false);
  const [changing, setChanging] = useState<User | null>(null);
  const act = useAct();
  const patch = (user: User, body: object, done: string) => void act("PATCH", `users/${user.id}`, body, done);
  const close = async (user: User) => {
    const text = "The user is signed out and can no longer sign in. Everything they created is kept.";
    if (!user.active || (await ask({ title: `Close the account of ${user.username}?`, text, verb: "Close account", danger: true })))
      patch(user, { active: !user.active }, `${user.active ? "Closed" : "Opened"} the account of ${user.username}`);
  };
  const fits = (user: User) => `${user.username} ${user.displayName}`.toLowerCase().includes(wanted.toLowerCase());
  return (
    <>
      <Listing
        title="Users"
        count={answer.data?.users.length}
        answer={answer}
        rows={({ users }) => users.filter(fits)}
        tools={<Search label="Find a user" value={wanted} onChange={setWanted} small />}
        make={{ verb: "Add user", act: () => setMaking(true), not }}
        id={(user) => user.id}
        called={(user) => user.username}
        store="users"
        columns={[
          {
            id: "user",
            head: "User",
            name: true,
            value: (user) => user.username,
            cell: (user) => (
              <span className="cut" title={user.username}>
                <Avatar name={user.username} plain />
                {user.displayName || user.username} {user.displayName && <span className="sub">{user.username}</span>}
              </span>
            ),
          },
          {
            id: "role",
            head: "Role",
            width: 150,
            small: true,
            cell: (user) => (user.admin ? "administrator" : "user"),
            value: (user) => Number(user.admin),
          },
          {
            id: "account",
            head: "Account",
            width: 110,
            cell: (user) => (user.active ? "open" : <Tag kind="bad">closed</Tag>),
            value: (user) => Number(user.active),
          },
          { id: "id", head: "ID", width: 60, num: true, cell: (user) => user.id, value: (user) => user.id },
        ]}
        actions={(user) => [
          {
            name: `Make ${user.admin ? "user" : "administrator"}`,
            icon: <ShieldCheck />,
            not,
            act: () => patch(user, { admin: !user.admin }, `${user.username} is ${user.admin ? "a user" : "an administrator"}`),
          },
          { name: "Set a password", icon: <KeyRound />, not, act: () => setChanging(user) },
          null,
          { name: `${user.active ? "Close" : "Open"} account`, icon: <UserX />, danger: user.active, not, act: () => void close(user) },
        ]}
      />
      {making && <NewUser taken={answer.data?.users.map((user) => user.username) ?? []} onClose={() => setMaking(false)} />}
      {changing && <SetPassword user={changing} onClose={() => setChanging(null)} />}
    </>
  );
}

function NewUser({ taken, onClose }: { taken: string[]; onClose: () => void }) {
  const [name, setName] = useState("");
  const act = useAct();
  const used = taken.includes(name.trim());
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (used) return;
    const form = new FormData(event.currentTarget);
    const user = { username: name.trim(), admin: form.get("admin") === "on", active: true };
    if (await act("POST", "users", { user, password: form.get("password"), isHashed: false }, `Added ${user.username}`)) onClose();
  };
  return (
    <Dialog title="Add a user" onClose={onClose}>
      <form onSubmit={(event) => void make(event)}>
        <TextField
          label="User name"
          value={name}
          onChange={setName}
          required
          error={used ? `This name is taken. Try ${name.trim()}.2` : undefined}
        />
        <PasswordField label="Password" name="password" autoComplete="new-password" hint="The user can change it in the settings." />
        <Check label="Administrator: manages users, agents and the cluster" name="admin" />
        <DialogFoot onClose={onClose}>Add user</DialogFoot>
      </form>
    </Dialog>
  );
}

function SetPassword({ user, onClose }: { user: User; onClose: () => void }) {
  const act = useAct();
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const password = new FormData(event.currentTarget).get("password");
    if (await act("PATCH", `users/${user.id}`, { password, isHashed: false }, `Set the password of ${user.username}`)) onClose();
  };
  return (
    <Dialog title={`Set the password of ${user.username}`} text="Ends all of the user's sessions." onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        <PasswordField label="New password" name="password" autoComplete="new-password" required />
        <DialogFoot onClose={onClose}>Set password</DialogFoot>
      </form>
    </Dialog>
  );
}
