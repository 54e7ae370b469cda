import { Trash2, UserPlus, UsersRound, X } from "lucide-react";
import { type FormEvent, useState } from "react";

import { useData } from "../../api/data";
import { useRights } from "../../api/rights";
import type { User } from "../../api/types";
import { Button, IconButton } from "../../ui/button";
import { ask, Dialog, DialogFoot } from "../../ui/dialog";
import { Select, TextField } from "../../ui/field";
import type { Column } from "../../ui/table";
import { Avatar, Cut } from "../../ui/text";
import { useAct } from "./change";
import { Listing } from "./listing";

export interface Group {
  group: { groupId: number; name: string };
  numMembers: number;
}

const TOPICS = ["rights", "users"];
const COLUMNS: Column<Group>[] = [
  { id: "name", head: "Group", name: true, cell: (group) => <Cut>{group.group.name}</Cut>, value: (group) => group.group.name },
  { id: "members", head: "Members", width: 90, num: true, cell: (group) => group.numMembers, value: (group) => group.numMembers },
];

/** Groups of users; the roles of a group decide what its members may do. */
export function Groups() {
  const not = useRights()("administer_users");
  const answer = useData<{ groups: Group[] }>("groups", TOPICS);
  const [making, setMaking] = useState(false);
  const [open, setOpen] = useState<Group | null>(null);
  const act = useAct();
  const remove = async ({ group, numMembers }: Group) => {
    const who = numMembers === 1 ? "1 member loses" : `${numMembers} members lose`;
    const text = `Its ${who} the group's roles; their accounts are kept.`;
    if (await ask({ title: `Delete the group ${group.name}?`, text, verb: "Delete", danger: true }))
      await act("DELETE", `groups/${group.groupId}`, {}, `Deleted ${group.name}`);
  };
  return (
    <>
      <Listing
        title="Groups"
        answer={answer}
        rows={({ groups }) => groups}
        make={{ verb: "New group", act: () => setMaking(true), not }}
        empty={{
          icon: <UsersRound className="l" />,
          title: "No groups yet",
          command: "det user-group create NAME",
          children: "Members of a group have its roles.",
        }}
        id={(group) => group.group.groupId}
        called={(group) => group.group.name}
        columns={COLUMNS}
        actWidth={140}
        act={(group) => (
          <Button small icon={<UsersRound />} onClick={() => setOpen(group)}>
            Members
          </Button>
        )}
        actions={(group) => [{ name: "Delete", icon: <Trash2 />, danger: true, not, act: () => void remove(group) }]}
      />
      {making && <NewGroup onClose={() => setMaking(false)} />}
      {open && <Members of={open} not={not} onClose={() => setOpen(null)} />}
    </>
  );
}

function NewGroup({ onClose }: { onClose: () => void }) {
  const act = useAct();
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = new FormData(event.currentTarget).get("name");
    if (await act("POST", "groups", { name }, `Created the group ${name}`)) onClose();
  };
  return (
    <Dialog title="New group" onClose={onClose}>
      <form onSubmit={(event) => void make(event)}>
        <TextField label="Name" name="name" required />
        <DialogFoot onClose={onClose}>Create group</DialogFoot>
      </form>
    </Dialog>
  );
}

function Members({ of, not, onClose }: { of: Group; not: string; onClose: () => void }) {
  const path = `groups/${of.group.groupId}`;
  const answer = useData<{ group: { users: User[] } }>(path, TOPICS);
  const users = useData<{ users: User[] }>("users", ["users"]);
  const act = useAct();
  const members = answer.data?.group.users ?? [];
  const others = users.data?.users.filter((user) => user.active && !members.some((member) => member.id === user.id)) ?? [];
  const add = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    void act("PUT", path, { addUsers: [Number(new FormData(event.currentTarget).get("user"))] }, "");
  };
  return (
    <Dialog title={`Members of ${of.group.name}`} onClose={onClose} foot={<Button onClick={onClose}>Done</Button>}>
      <ul style={{ display: "grid", gap: 6, maxHeight: "40vh", overflow: "auto" }}>
        {members.map((member) => (
          <li key={member.id} className="check">
            <Avatar name={member.displayName || member.username} plain small />
            <Cut>{member.username}</Cut>
            <IconButton
              icon={<X />}
              label={`Remove ${member.username}`}
              not={not}
              onClick={() => void act("PUT", path, { removeUsers: [member.id] }, "")}
            />
          </li>
        ))}
        {answer.data && !members.length && <li className="ink3">No members yet.</li>}
      </ul>
      {others.length > 0 && (
        <form onSubmit={add} style={{ display: "flex", alignItems: "end" }}>
          <div style={{ flex: 1 }}>
            <Select above label="Add a user" name="user" options={others.map((user) => [String(user.id), user.username] as const)} />
          </div>
          <Button type="submit" icon={<UserPlus />} not={not}>
            Add
          </Button>
        </form>
      )}
    </Dialog>
  );
}
