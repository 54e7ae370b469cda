/** Moves a job by dragging its grip or with the arrow keys; shows the target before the move. */

import { useQuery } from "@tanstack/react-query";
import { GripVertical } from "lucide-react";
import { type DragEvent, type KeyboardEvent, useState } from "react";

import { send } from "../../api/client";
import type { Job } from "../../api/types";
import { Note } from "../../ui/card";
import { called, consequence, type Preview } from "./facts";

/** The target of a move: ahead of or behind another job of the same pool. */
export interface Aim {
  job: Job;
  other: Job;
  ahead: boolean;
}

export const wishOf = ({ other, ahead }: Aim) => (ahead ? { aheadOf: other.jobId } : { behindOf: other.jobId });

/** The target `by` positions further on in the job's pool; null if that is where it is now. */
function stepped(jobs: Job[], aim: Aim | null, job: Job, by: -1 | 1): Aim | null {
  const line = jobs.filter((other) => other.resourcePool === job.resourcePool);
  const at = line.findIndex((other) => other.jobId === job.jobId);
  const others = line.filter((other) => other.jobId !== job.jobId);
  const place = aim ? others.findIndex((job) => job.jobId === aim.other.jobId) + (aim.ahead ? 0 : 1) : at;
  const next = Math.max(0, Math.min(others.length, place + by));
  if (next === at || !others.length) return null;
  return next < at ? { job, other: others[next]!, ahead: true } : { job, other: others[next - 1]!, ahead: false };
}

export function useMoving(jobs: Job[], canMove: (job: Job) => boolean, onMove: (aim: Aim) => void) {
  const [dragged, setDragged] = useState<Job | null>(null);
  const [aim, setAim] = useState<Aim | null>(null);
  const stop = () => {
    setDragged(null);
    setAim(null);
  };
  const make = () => {
    if (aim) onMove(aim);
    stop();
  };
  const press = (event: KeyboardEvent, job: Job) => {
    const by = { ArrowUp: -1 as const, ArrowDown: 1 as const }[event.key];
    if (by) setAim(stepped(jobs, aim?.job.jobId === job.jobId ? aim : null, job, by));
    else if (event.key === "Enter" || event.key === " ") make();
    else if (event.key === "Escape") stop();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const under = (event: DragEvent): Aim | null => {
    const row = (event.target as Element).closest<HTMLElement>("tr[data-id]");
    const other = jobs.find((job) => job.jobId === row?.dataset.id);
    if (!dragged || !row || !other || other.resourcePool !== dragged.resourcePool) return null;
    event.preventDefault();
    const box = row.getBoundingClientRect();
    return { job: dragged, other, ahead: event.clientY < box.top + box.height / 2 };
  };
  const over = (event: DragEvent) => {
    const next = under(event);
    const same = next && aim?.other.jobId === next.other.jobId && aim.ahead === next.ahead;
    if (next && !same) setAim(next.other.jobId === next.job.jobId ? null : next);
  };
  // Computed from the event rather than from `aim`, since the drop may come before the last aim is rendered.
  const drop = (event: DragEvent) => {
    const next = under(event);
    if (next && next.other.jobId !== next.job.jobId) onMove(next);
    stop();
  };
  const grip = (job: Job) =>
    canMove(job) && (
      <button
        type="button"
        className="grab"
        draggable
        aria-label={`Move ${called(job)}: arrow keys choose the position, Enter moves it`}
        data-tip="Drag, or use the arrow keys"
        onDragStart={(event) => {
          event.dataTransfer.effectAllowed = "move";
          event.dataTransfer.setData("text/plain", job.name);
          setDragged(job);
        }}
        onDragEnd={stop}
        onKeyDown={(event) => press(event, job)}
        onBlur={() => !dragged && setAim(null)}
      >
        <GripVertical className="s" />
      </button>
    );
  const mark = ({ jobId }: Job) =>
    aim?.other.jobId === jobId ? (aim.ahead ? "aim-above" : "aim-below") : aim?.job.jobId === jobId ? "aims" : "";
  return { aim, grip, mark, over, drop };
}

/** The effect of the move that is being aimed. */
export function Told({ aim, names }: { aim: Aim; names: Map<string, string> }) {
  const request = { jobId: aim.job.jobId, ...wishOf(aim) };
  const answer = useQuery({
    queryKey: ["preview", request],
    queryFn: () => send<Preview>("POST", "job-queues/preview", request),
    staleTime: 2000,
    retry: false,
  });
  return (
    <div className="would" role="status">
      <Note kind={answer.error ? "warn" : "info"}>
        <b className="b">
          {aim.job.name} {aim.ahead ? "ahead of" : "behind"} {aim.other.name}.
        </b>{" "}
        {answer.error ? answer.error.message : answer.data ? consequence(aim.job, answer.data, names) : "…"}
      </Note>
    </div>
  );
}
