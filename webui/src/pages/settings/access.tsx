import { KeyRound, LogOut, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";

import { useData } from "../../api/data";
import { Button } from "../../ui/button";
import { Note } from "../../ui/card";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { NumberField, Select, TextField } from "../../ui/field";
import type { Column } from "../../ui/table";
import { Copyable, Cut, Tag, Time } from "../../ui/text";
import { useAct } from "./change";
import { Listing } from "./listing";

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

const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const Until = ({ at }: { at: string }) => <time dateTime={at}>{day.format(new Date(at))}</time>;

const SESSIONS: Column<Session>[] = [
  { id: "with", head: "With", name: true, cell: (session) => <Cut>{session.client}</Cut>, value: (session) => session.client },
  { id: "from", head: "From", width: 130, cell: (session) => <Cut>{session.address}</Cut>, value: (session) => session.address },
  {
    id: "since",
    head: "Since",
    width: 120,
    small: true,
    under: true,
    cell: (session) => <Time at={session.openedAt} />,
    value: (session) => session.openedAt,
  },
  {
    id: "ends",
    head: "Expires if unused",
    width: 150,
    cell: (session) => <Until at={session.expiresAt} />,
    value: (session) => session.expiresAt,
  },
];

const TOKENS: Column<Token>[] = [
  { id: "name", head: "Name", name: true, cell: (token) => <Cut>{token.name}</Cut>, value: (token) => token.name },
  {
    id: "may",
    head: "May",
    width: 150,
    small: true,
    under: true,
    cell: (token) => (token.scope === "read" ? "look only" : "do what you may"),
    value: (token) => token.scope,
  },
  { id: "made", head: "Created", width: 120, cell: (token) => <Time at={token.createdAt} />, value: (token) => token.createdAt },
  { id: "ends", head: "Ends", width: 130, cell: (token) => <Until at={token.expiry} />, value: (token) => token.expiry },
];

/** The user's sign-in sessions; each can be ended here. */
export function Sessions({ user }: { user: number }) {
  const path = `users/${user}/sessions`;
  const answer = useData<{ sessions: Session[] }>(path, ["access"]);
  const act = useAct();
  const end = (session: Session) => void act("DELETE", `${path}/${session.id}`, {}, "Signed out there");
  const many = answer.data?.sessions.length ?? 0;
  return (
    <Listing
      title="Where you are signed in"
      name="Sessions"
      answer={answer}
      rows={({ sessions }) => sessions}
      tools={
        many > 1 && (
          <Button small onClick={() => void act("DELETE", path, {}, "Signed out everywhere else")}>
            Log out everywhere else
          </Button>
        )
      }
      id={(session) => session.id}
      columns={SESSIONS}
      actWidth={132}
      act={(session) =>
        session.current ? (
          <Tag>this one</Tag>
        ) : (
          <Button small icon={<LogOut />} onClick={() => end(session)}>
            Log out there
          </Button>
        )
      }
    />
  );
}

/** Access tokens for programs. A token is shown once, when it is created. */
export function Tokens() {
  const answer = useData<{ tokenInfo: Token[] }>("tokens", ["access"]);
  const [making, setMaking] = useState(false);
  const act = useAct();
  return (
    <>
      <Listing
        title="API tokens"
        answer={answer}
        rows={({ tokenInfo }) => tokenInfo}
        make={{ verb: "New API token", act: () => setMaking(true) }}
        empty={{
          icon: <KeyRound className="l" />,
          title: "No tokens yet",
          command: "det token create NAME",
          children: "A program that presents one acts as you.",
        }}
        id={(token) => token.id}
        columns={TOKENS}
        actWidth={104}
        act={(token) => (
          <Button small icon={<Trash2 />} onClick={() => void act("DELETE", `tokens/${token.id}`, {}, `Revoked ${token.name}`)}>
            Revoke
          </Button>
        )}
      />
      {making && <NewToken onClose={() => setMaking(false)} />}
    </>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState("");
  const act = useAct();
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const body = { name: form.get("name"), scope: form.get("scope"), lifespan: `${form.get("days")}d` };
    const answer = await act<{ token: string }>("POST", "tokens", body, "");
    if (answer) setMade(answer.token);
  };
  if (made)
    return (
      <Dialog title="Copy the token now" onClose={onClose} foot={<Button onClick={onClose}>Done</Button>}>
        <Note kind="warn" role="status">
          It is not shown again.
        </Note>
        <Copyable text={made} />
      </Dialog>
    );
  return (
    <Dialog title="New API token" onClose={onClose}>
      <form onSubmit={(event) => void make(event)}>
        <TextField label="Purpose" name="name" required />
        <Select
          above
          label="Permissions"
          name="scope"
          options={[
            ["all", "do what you may"],
            ["read", "look only"],
          ]}
        />
        <NumberField label="Days until it expires" name="days" min={1} max={366} defaultValue="30" required />
        <DialogFoot onClose={onClose}>Create token</DialogFoot>
      </form>
    </Dialog>
  );
}
