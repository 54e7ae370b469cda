import { useQueryClient } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, ArrowUpToLine, CircleStop, Gauge, X } from "lucide-react";
import { useMemo, useState } from "react";

import { send } from "../../api/client";
import { useRights } from "../../api/rights";
import type { Job } from "../../api/types";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { ask } from "../../ui/dialog";
import { useNarrow } from "../../ui/media";
import type { MenuItems } from "../../ui/menu";
import { Table } from "../../ui/table";
import { failed, toast } from "../../ui/toast";
import { ofRunning, ofWaiting, shares } from "./columns";
import { called, consequence, isExperiment, isWaiting, NOUNS, type Pool, type Preview } from "./facts";
import { type Aim, Told, useMoving, wishOf } from "./moving";
import { SetShare } from "./share";
import { many } from "../../parts/format";

/** Actions on the queue: shows the cost and asks first, then reports the effect and offers to undo it. */
function useChanges(jobs: Job[], names: Map<string, string>) {
  const client = useQueryClient();
  const put = (job: Job, fields: object) =>
    send("POST", "job-queues", { updates: [{ jobId: job.jobId, ...fields }] }).finally(() => void client.invalidateQueries());
  const change = async (job: Job, fields: object, done: string, back?: object) => {
    try {
      await put(job, fields);
      toast({ text: done, undo: back && (() => put(job, back)) });
    } catch (error) {
      failed(error, called(job));
    }
  };
  const move = async (aim: Aim) => {
    const { job, other, ahead } = aim;
    const where = `${ahead ? "ahead of" : "behind"} ${other.name}`;
    try {
      const preview = await send<Preview>("POST", "job-queues/preview", { jobId: job.jobId, ...wishOf(aim) });
      const sentence = consequence(job, preview, names);
      if (preview.leaves.length && !(await ask({ title: `Move ${job.name} ${where}?`, text: sentence, verb: "Move" }))) return;
      await change(job, wishOf(aim), `Moved ${job.name} ${where}. ${sentence}`, wayBack(jobs, job));
    } catch (error) {
      failed(error, called(job));
    }
  };
  const end = async (job: Job, verb: "cancel" | "kill") => {
    const lost = verb === "kill" ? "Unsaved work is lost." : "Its trials save a checkpoint and stop.";
    const word = verb === "kill" ? "Kill" : "Stop";
    const text = job.allocatedSlots
      ? `It holds ${many(job.allocatedSlots, "slot")}. ${lost}`
      : "It has not started, so only its place in the queue is lost.";
    if (!(await ask({ title: `${word} ${job.name}?`, text, verb: word, danger: true, cancel: "Keep" }))) return;
    try {
      await send("POST", `${NOUNS[job.type]}/${job.entityId}/${verb}`);
      toast({ text: `${verb === "kill" ? "Killed" : "Stopping"} ${job.name}` });
    } catch (error) {
      failed(error, called(job));
    }
    void client.invalidateQueries();
  };
  return { change, move, end };
}

function placeOf(jobs: Job[], job: Job) {
  const line = jobs.filter((other) => other.resourcePool === job.resourcePool);
  const at = line.indexOf(job);
  return { first: line[0]!, before: line[at - 1], after: line[at + 1] };
}

/** The request that puts a job back where it is now. */
function wayBack(jobs: Job[], job: Job) {
  const { before, after } = placeOf(jobs, job);
  return after ? { aheadOf: after.jobId } : before && { behindOf: before.jobId };
}

export function Lists({ jobs, pools, several }: { jobs: Job[]; pools: Pool[]; several: boolean }) {
  const [setting, setSetting] = useState<{ job: Job; what: "priority" | "weight" } | null>(null);
  const waiting = useMemo(() => jobs.filter(isWaiting), [jobs]);
  const running = useMemo(() => jobs.filter((job) => !isWaiting(job)), [jobs]);
  const names = useMemo(() => new Map(jobs.map((job) => [job.jobId, job.name])), [jobs]);
  const { change, move, end } = useChanges(jobs, names);
  const scheduler = (job: Job) => pools.find((pool) => pool.name === job.resourcePool)?.schedulerType ?? "";
  const ranks = (job: Job) => scheduler(job).endsWith("PRIORITY");
  const rights = useRights();
  const notMine = (job: Job) => rights(isExperiment(job) ? "control" : "control_task", job);
  const moving = useMoving(
    waiting,
    (job) => ranks(job) && !notMine(job),
    (aim) => void move(aim),
  );
  const items = (job: Job): MenuItems => {
    const { first, before, after } = placeOf(jobs, job);
    const not = notMine(job);
    const unordered = ranks(job) ? not : "this pool has no order";
    const to = (name: string, icon: React.ReactNode, other: Job | undefined, ahead: boolean, none: string) => ({
      name,
      icon,
      not: unordered || (other && other !== job ? "" : none),
      act: () => other && void move({ job, other, ahead }),
    });
    const what = ranks(job) ? "priority" : "weight";
    const shared = ranks(job) || scheduler(job).endsWith("FAIR_SHARE");
    return [
      to("Move to the front", <ArrowUpToLine />, first, true, "is the first"),
      to("Move up", <ArrowUp />, before, true, "is the first"),
      to("Move down", <ArrowDown />, after, false, "is the last"),
      null,
      {
        name: `Set the ${what}`,
        icon: <Gauge />,
        not: shared ? not : "this pool takes turns",
        act: () => setSetting({ job, what }),
      },
      null,
      ...(isExperiment(job) ? [{ name: "Stop after this batch", icon: <CircleStop />, not, act: () => void end(job, "cancel") }] : []),
      { name: "Kill", icon: <X />, danger: true, not, act: () => void end(job, "kill") },
    ];
  };
  const up = (job: Job) => {
    const before = waiting.filter((other) => other.resourcePool === job.resourcePool)[
      waiting.filter((other) => other.resourcePool === job.resourcePool).indexOf(job) - 1
    ];
    return (
      before &&
      ranks(job) && (
        <Button
          small
          icon={<ArrowUp />}
          aria-label={`Move ${called(job)} up`}
          not={notMine(job)}
          onClick={() => void move({ job, other: before, ahead: true })}
        >
          Up
        </Button>
      )
    );
  };
  const mine = waiting.some((job) => !notMine(job));
  const narrow = useNarrow();
  const ordered = waiting.some(ranks);
  const actWidth = ordered && mine && !narrow ? 106 : undefined;
  const share = shares(jobs, jobs.some(ranks));
  const common = { id: (job: Job) => job.jobId, called, actions: items };
  return (
    <>
      <Card
        title="Waiting"
        count={waiting.length || undefined}
        flush
        more={ordered ? (mine ? "in starting order; drag to reorder" : "in starting order") : "in order of submission"}
      >
        {waiting.length ? (
          // biome-ignore lint/a11y/noStaticElementInteractions: the buttons are the grips inside
          <div onDragOver={moving.over} onDrop={moving.drop}>
            <Table
              name="Waiting jobs"
              rows={waiting}
              columns={ofWaiting(moving.grip, (job) => waiting.indexOf(job) + 1, ordered, several, share)}
              act={ordered && mine && !narrow ? up : undefined}
              actWidth={actWidth}
              className={moving.mark}
              store="queue waiting"
              {...common}
            />
          </div>
        ) : (
          <p className="pad ink2">Nothing is waiting.</p>
        )}
        {/* Below the table, so that rows do not move under the pointer. */}
        {moving.aim && <Told aim={moving.aim} names={names} />}
      </Card>
      <Card title="Running" flush more={counted(running)}>
        {running.length ? (
          <Table
            name="Running jobs"
            rows={running}
            columns={ofRunning(ordered, several, share)}
            actWidth={actWidth}
            store="queue running"
            {...common}
          />
        ) : (
          <p className="pad ink2">Nothing is running.</p>
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

function counted(running: Job[]): string {
  return many(
    running.reduce((sum, job) => sum + job.allocatedSlots, 0),
    "slot",
  );
}
