import { Gauge, Pencil, Trash2 } from "lucide-react";
import { type FormEvent, useState } from "react";

import { useData } from "../../api/data";
import { useRights } from "../../api/rights";
import type { User } from "../../api/types";
import { number, size } from "../../parts/format";
import { ask, Dialog, DialogFoot } from "../../ui/dialog";
import { NumberField, Select } from "../../ui/field";
import { Meter } from "../../ui/meter";
import type { Column } from "../../ui/table";
import { Cut } from "../../ui/text";
import { useAct } from "./change";
import type { Group } from "./groups";
import { Listing } from "./listing";

type Limits = Record<"slots" | "jobs" | "storageBytes", number | null>;
interface Quota extends Limits {
  /** Such as `user-3`. */
  holder: string;
  kind: string;
  name: string;
  used: Limits;
}

const GIGA = 1e9;
const FULL = 0.9;
const TOPICS = ["rights", "users", "queue"];

/** Usage as a share of the limit; a bar fills as it gets near. */
function share(head: string, what: keyof Limits, show: (value: number) => string): Column<Quota> {
  return {
    id: what,
    head,
    width: 190,
    value: (quota) => (quota[what] ? (quota.used[what] ?? 0) / quota[what] : null),
    cell: (quota) => {
      const [limit, used] = [quota[what], quota.used[what]];
      if (limit === null) return <span className="ink3">no limit</span>;
      const part = limit ? (used ?? 0) / limit : 1;
      const usage = `${used === null ? "?" : show(used)} of ${show(limit)}`;
      return (
        <span className="quota">
          <Meter label={usage} parts={[{ share: part, colour: part >= FULL ? "var(--paused)" : "var(--running)" }]} />
          <span className="tn">{usage}</span>
        </span>
      );
    },
  };
}

const COLUMNS: Column<Quota>[] = [
  { id: "name", head: "Of", name: true, cell: (quota) => <Cut>{quota.name}</Cut>, value: (quota) => quota.name },
  { id: "kind", head: "Kind", width: 110, cell: (quota) => <span className="ink2">{quota.kind}</span>, value: (quota) => quota.kind },
  share("Slots at once", "slots", (value) => number(value)),
  share("Unended jobs", "jobs", (value) => number(value)),
  share("Checkpoints", "storageBytes", (value) => size(value)),
];

/** Limits on slots held at once, unfinished jobs, and bytes of checkpoints. */
export function Quotas() {
  const not = useRights()("administer_cluster");
  const answer = useData<{ quotas: Quota[] }>("quotas", TOPICS);
  const [setting, setSetting] = useState<Quota | "new" | null>(null);
  const act = useAct();
  const remove = async (quota: Quota) => {
    const text = "They keep what they have, and nothing limits them any longer.";
    if (await ask({ title: `Remove the quota of ${quota.name}?`, text, verb: "Remove" }))
      await act("DELETE", `quotas/${quota.holder}`, {}, `Removed the quota of ${quota.name}`);
  };
  return (
    <>
      <Listing
        title="Quotas"
        answer={answer}
        rows={({ quotas }) => quotas}
        make={{ verb: "New quota", act: () => setSetting("new"), not }}
        empty={{
          icon: <Gauge className="l" />,
          title: "No quotas",
          command: "det quota set --user NAME --slots 8",
          children: "A quota keeps one user, group or workspace from taking all slots, jobs or storage.",
        }}
        id={(quota) => quota.holder}
        called={(quota) => `${quota.kind} ${quota.name}`}
        columns={COLUMNS}
        actions={(quota) => [
          { name: "Change", icon: <Pencil />, not, act: () => setSetting(quota) },
          { name: "Remove", icon: <Trash2 />, danger: true, not, act: () => void remove(quota) },
        ]}
      />
      {setting && <SetQuota quota={setting === "new" ? null : setting} onClose={() => setSetting(null)} />}
    </>
  );
}

/** Everyone who can have a quota, by their name in the REST API. */
function useHolders(wanted: boolean): (readonly [string, string])[] {
  const users = useData<{ users: User[] }>(wanted ? "users" : null);
  const groups = useData<{ groups: Group[] }>(wanted ? "groups" : null);
  const spaces = useData<{ workspaces: { id: number; name: string }[] }>(wanted ? "workspaces" : null);
  return [
    ...(users.data?.users ?? []).map((user) => [`user-${user.id}`, `user ${user.username}`] as const),
    ...(groups.data?.groups ?? []).map(({ group }) => [`group-${group.groupId}`, `group ${group.name}`] as const),
    ...(spaces.data?.workspaces ?? []).map((workspace) => [`workspace-${workspace.id}`, `workspace ${workspace.name}`] as const),
  ];
}

function SetQuota({ quota, onClose }: { quota: Quota | null; onClose: () => void }) {
  const act = useAct();
  const holders = useHolders(quota === null);
  const [chosen, setChosen] = useState("");
  const holder = quota?.holder ?? (chosen || holders[0]?.[0] || "");
  const name = quota?.name ?? holders.find(([id]) => id === holder)?.[1] ?? "";
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = (field: string) => (form.get(field) ? Number(form.get(field)) : null);
    const gigabytes = given("storage");
    const body = { slots: given("slots"), jobs: given("jobs"), storageBytes: gigabytes === null ? null : Math.round(gigabytes * GIGA) };
    if (await act("PUT", `quotas/${holder}`, body, `Set the quota of ${name}`)) onClose();
  };
  const text = (value: number | null | undefined) => (value === null || value === undefined ? "" : String(value));
  return (
    <Dialog title={quota ? `Quota of ${quota.name}` : "New quota"} onClose={onClose}>
      <form onSubmit={(event) => void save(event)}>
        {!quota && <Select label="Of" value={holder} options={holders} onChange={setChosen} />}
        <NumberField label="Slots at once" name="slots" min={0} step={1} defaultValue={text(quota?.slots)} hint="Empty: no limit." />
        <NumberField
          label="Jobs that have not ended"
          name="jobs"
          min={0}
          step={1}
          defaultValue={text(quota?.jobs)}
          hint="Empty: no limit."
        />
        <NumberField
          label="Checkpoints in GB"
          name="storage"
          min={0}
          step="any"
          defaultValue={text(quota?.storageBytes === null || quota === null ? null : quota.storageBytes / GIGA)}
          hint="Empty: no limit."
        />
        <DialogFoot onClose={onClose}>Set quota</DialogFoot>
      </form>
    </Dialog>
  );
}
