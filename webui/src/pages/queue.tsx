import { useQueryClient } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, ArrowUpToLine, CircleStop, Gauge, ListOrdered, X } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";

import { query, send } from "../api/client";
import { useData } from "../api/data";
import type { Job } from "../api/types";
import { duration } from "../parts/format";
import { IconButton } from "../ui/button";
import { Card } from "../ui/card";
import { ask, Dialog, DialogFoot } from "../ui/dialog";
import { NumberField } from "../ui/field";
import type { MenuItems } from "../ui/menu";
import { PageHead, usePlace } from "../ui/page";
import { State } from "../ui/state";
import { Empty, Loaded } from "../ui/status";
import { type Column, Table } from "../ui/table";
import { Views } from "../ui/tabs";
import { Avatar, Time } from "../ui/text";
import { failed, toast } from "../ui/toast";

interface Pool {
  name: string;
  schedulerType: string;
  stats: { queuedCount: number; scheduledCount: number };
}

const NOUNS: Record<string, string> = {
  TYPE_EXPERIMENT: "experiments",
  TYPE_COMMAND: "commands",
  TYPE_TENSORBOARD: "tensorboards",
  TYPE_NOTEBOOK: "notebooks",
  TYPE_SHELL: "shells",
};

/** Jobs of all pools, or of one: who waits, for what, and what runs. */
export function Queue() {
  const pool = useParams().pool;
  usePlace({ crumbs: [{ name: "Queue", to: "/jobs" }, ...(pool ? [{ name: pool }] : [])] });
  const found = useData<{ jobs: Job[] }>(`job-queues${query({ resourcePool: pool })}`, ["queue", "experiments", "cluster"]);
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["queue", "cluster"]);
  const navigate = useNavigate();
  const jobs = found.data?.jobs ?? [];
  const waiting = jobs.filter((one) => one.summary.state === "STATE_QUEUED");
  return (
    <>
      <PageHead title="Queue" beside={found.data && `${waiting.length} wait, ${jobs.length - waiting.length} run`} />
      {(pools.data?.resourcePools.length ?? 0) > 0 && (
        <Views
          name="Pools"
          value={pool ?? ""}
          views={[
            { id: "", name: "All pools" },
            ...pools.data!.resourcePools.map((one) => ({ id: one.name, name: one.name, count: one.stats.queuedCount })),
          ]}
          onChange={(id) => navigate(id ? `/resourcepool/${encodeURIComponent(id)}` : "/jobs")}
        />
      )}
      <Loaded found={found}>
        {({ jobs }) =>
          jobs.length ? (
            <Lists jobs={jobs} pools={pools.data?.resourcePools ?? []} />
          ) : (
            <Card>
              <Empty
                icon={<ListOrdered className="l" />}
                title="Nothing waits and nothing runs"
                command="det experiment create config.yaml ."
              >
                What is submitted stands here until it ends.
              </Empty>
            </Card>
          )
        }
      </Loaded>
    </>
  );
}

const called = (job: Job) => `${job.name} (${job.entityId})`;

const name: Column<Job> = {
  id: "name",
  head: "Job",
  name: true,
  cell: (job) => (
    <Link
      className="cut"
      to={job.type === "TYPE_EXPERIMENT" ? `/experiments/${job.entityId}/overview` : `/${NOUNS[job.type]}/${job.entityId}/logs`}
      title={job.name}
    >
      {job.name} <span className="sub">{job.type === "TYPE_EXPERIMENT" ? job.entityId : "task"}</span>
    </Link>
  ),
  value: (job) => job.name,
};
const state: Column<Job> = { id: "state", head: "State", width: 116, small: true, cell: (job) => <State state={job.summary.state} /> };
const slots: Column<Job> = {
  id: "slots",
  head: "Slots",
  width: 76,
  num: true,
  small: true,
  cell: (job) => `${job.allocatedSlots} / ${job.requestedSlots}`,
};
const since = (job: Job) => (Date.now() - Date.parse(job.submissionTime)) / 1000;
const by: Column<Job> = {
  id: "user",
  head: "By",
  width: 48,
  cell: (job) => <Avatar name={job.username} small />,
  value: (job) => job.username,
};
const pool: Column<Job> = {
  id: "pool",
  head: "Pool",
  width: 110,
  cell: (job) => <span className="cut">{job.resourcePool}</span>,
  value: (job) => job.resourcePool,
};

const share = (scheduler: string): Column<Job>[] =>
  scheduler.endsWith("PRIORITY")
    ? [{ id: "priority", head: "Priority", width: 74, num: true, cell: (job) => job.priority, value: (job) => job.priority }]
    : scheduler.endsWith("FAIR_SHARE")
      ? [{ id: "weight", head: "Weight", width: 74, num: true, cell: (job) => job.weight, value: (job) => job.weight }]
      : [];

function Lists({ jobs, pools }: { jobs: Job[]; pools: Pool[] }) {
  const client = useQueryClient();
  const [setting, setSetting] = useState<{ job: Job; what: "priority" | "weight" } | null>(null);
  const waiting = useMemo(() => jobs.filter((one) => one.summary.state === "STATE_QUEUED"), [jobs]);
  const running = useMemo(() => jobs.filter((one) => one.summary.state !== "STATE_QUEUED"), [jobs]);
  const scheduler = (job: Job) => pools.find((one) => one.name === job.resourcePool)?.schedulerType ?? "";
  const change = async (job: Job, wish: object, said: string, back?: object) => {
    const put = (one: object) =>
      send("POST", "job-queues", { updates: [{ jobId: job.jobId, ...one }] }).finally(() => void client.invalidateQueries());
    try {
      await put(wish);
      toast({ text: said, undo: back && (() => put(back)) });
    } catch (error) {
      failed(error, called(job));
    }
  };
  const place = (job: Job) => {
    const all = jobs.filter((one) => one.resourcePool === job.resourcePool);
    const at = all.indexOf(job);
    return { first: all[0]!, before: all[at - 1], after: all[at + 1] };
  };
  const back = (job: Job) => {
    const { before, after } = place(job);
    return after ? { aheadOf: after.jobId } : before && { behindOf: before.jobId };
  };
  const ahead = (job: Job, of: Job) => void change(job, { aheadOf: of.jobId }, `Moved ${job.name} ahead of ${of.name}`, back(job));
  const behind = (job: Job, of: Job) => void change(job, { behindOf: of.jobId }, `Moved ${job.name} behind ${of.name}`, back(job));
  const end = async (job: Job, verb: "cancel" | "kill") => {
    const lost = verb === "kill" ? "What it has not saved is lost." : "Its trials save their state, then they leave.";
    const word = verb === "kill" ? "Kill" : "Cancel";
    const text = job.allocatedSlots ? `It holds ${job.allocatedSlots} slots. ${lost}` : "It waits, so nothing of it is lost but its place.";
    if (!(await ask({ title: `${word} ${job.name}?`, text, verb: word, danger: true, cancel: "Keep" }))) return;
    try {
      await send("POST", `${NOUNS[job.type]}/${job.entityId}/${verb}`);
      toast({ text: `${verb === "kill" ? "Killed" : "Canceled"} ${job.name}` });
    } catch (error) {
      failed(error, called(job));
    }
    void client.invalidateQueries();
  };
  const items = (job: Job): MenuItems => {
    const fair = scheduler(job).endsWith("FAIR_SHARE") ? "fair share has no order" : "";
    const { first, before, after } = place(job);
    const ranks = scheduler(job).endsWith("PRIORITY");
    return [
      { name: "Move to the front", icon: <ArrowUpToLine />, not: fair || (before ? "" : "is the first"), act: () => ahead(job, first) },
      { name: "Move up", icon: <ArrowUp />, not: fair || (before ? "" : "is the first"), act: () => before && ahead(job, before) },
      { name: "Move down", icon: <ArrowDown />, not: fair || (after ? "" : "is the last"), act: () => after && behind(job, after) },
      null,
      ranks
        ? { name: "Set the priority", icon: <Gauge />, act: () => setSetting({ job, what: "priority" }) }
        : {
            name: "Set the weight",
            icon: <Gauge />,
            not: fair ? "" : "this pool has none",
            act: () => setSetting({ job, what: "weight" }),
          },
      null,
      ...(job.type === "TYPE_EXPERIMENT" ? [{ name: "Cancel", icon: <CircleStop />, act: () => void end(job, "cancel") }] : []),
      { name: "Kill", icon: <X />, danger: true, act: () => void end(job, "kill") },
    ];
  };
  const up = (job: Job) => {
    const { before } = place(job);
    return (
      before &&
      !scheduler(job).endsWith("FAIR_SHARE") && (
        <IconButton icon={<ArrowUp />} label={`Move ${called(job)} up`} tip="Move up" onClick={() => ahead(job, before)} />
      )
    );
  };
  const kinds = new Set(jobs.map(scheduler));
  const shares = kinds.size === 1 ? share([...kinds][0]!) : [];
  const ordinal: Column<Job> = {
    id: "ahead",
    head: "#",
    width: 52,
    num: true,
    cell: (job) => (job.summary.jobsAhead < 0 ? "" : job.summary.jobsAhead + 1),
  };
  const reason: Column<Job> = { id: "reason", head: "Waits for", width: 380, wrap: true, cell: (job) => job.waitsFor };
  const waits: Column<Job> = { id: "waits", head: "Waits", width: 90, num: true, cell: (job) => duration(since(job)), value: since };
  const submitted: Column<Job> = {
    id: "submitted",
    head: "Submitted",
    width: 110,
    cell: (job) => <Time at={job.submissionTime} />,
    value: since,
  };
  const preempt: Column<Job> = {
    id: "preemptible",
    head: "May be interrupted",
    width: 140,
    cell: (job) => <span className="ink2">{job.isPreemptible ? "yes" : "cannot be"}</span>,
  };
  const table = (label: string, rows: Job[], columns: Column<Job>[], withUp: boolean) => (
    <Table
      name={label}
      rows={rows}
      id={(job) => job.jobId}
      called={called}
      columns={columns}
      actions={items}
      act={withUp ? up : undefined}
      actWidth={withUp ? 76 : undefined}
      store={`queue ${label}`}
    />
  );
  return (
    <>
      <Card title="Waiting" flush more={waiting.length > 0 && <span>in order of start</span>}>
        {waiting.length ? (
          table("Waiting jobs", waiting, [ordinal, name, state, reason, ...shares, slots, pool, waits, by], true)
        ) : (
          <p className="pad ink2">Nothing waits.</p>
        )}
      </Card>
      <Card title="Running" flush more={<span>{running.reduce((sum, one) => sum + one.allocatedSlots, 0)} slots</span>}>
        {running.length ? (
          table("Running jobs", running, [name, state, slots, ...shares, pool, preempt, submitted, by], false)
        ) : (
          <p className="pad ink2">Nothing runs.</p>
        )}
      </Card>
      {setting && (
        <SetShare
          {...setting}
          onClose={() => setSetting(null)}
          onSet={(value) => {
            setSetting(null);
            void change(setting.job, { [setting.what]: value }, `${setting.job.name} has the ${setting.what} ${value}`, {
              [setting.what]: setting.job[setting.what],
            });
          }}
        />
      )}
    </>
  );
}

const HINTS = { priority: "1 comes first, 99 last.", weight: "Its share of the pool beside the weights of others." };

function SetShare({
  job,
  what,
  onSet,
  onClose,
}: {
  job: Job;
  what: "priority" | "weight";
  onSet: (value: number) => void;
  onClose: () => void;
}) {
  const label = what === "priority" ? "Priority" : "Weight";
  return (
    <Dialog title={`${label} of ${called(job)}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSet(Number(new FormData(event.currentTarget).get("value")));
        }}
      >
        <NumberField
          label={label}
          name="value"
          defaultValue={String(job[what])}
          hint={HINTS[what]}
          min={what === "priority" ? 1 : 0.01}
          max={what === "priority" ? 99 : undefined}
          step={what === "priority" ? 1 : "any"}
          required
        />
        <DialogFoot onClose={onClose}>Set the {what}</DialogFoot>
      </form>
    </Dialog>
  );
}
