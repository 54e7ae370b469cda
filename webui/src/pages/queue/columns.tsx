import { Link } from "react-router";

import type { Job } from "../../api/types";
import { count, duration, many } from "../../parts/format";
import { State } from "../../ui/state";
import type { Column } from "../../ui/table";
import { Avatar, Cut, Time } from "../../ui/text";
import { isExperiment, pageOf, startsAt, will } from "./facts";

const since = (job: Job) => (Date.now() - Date.parse(job.submissionTime)) / 1000;

const [PLACE_PX, NAME_PX] = [66, 190];

const NAME: Column<Job> = {
  id: "name",
  head: "Job",
  name: true,
  cell: (job) => (
    <Link className="named" to={pageOf(job)} title={job.name}>
      <span className="cut">{job.name}</span> <span className="sub">{isExperiment(job) ? job.entityId : "task"}</span>
    </Link>
  ),
  value: (job) => job.name,
};
const STATE: Column<Job> = {
  id: "state",
  head: "State",
  width: 128,
  small: true,
  under: true,
  cell: (job) => <State state={job.canStart ? job.summary.state : "CANNOT_START"} />,
};
const SLOTS: Column<Job> = {
  id: "slots",
  head: "Slots",
  width: 104,
  least: 76,
  num: true,
  small: true,
  title: (job) => `${count(job.allocatedSlots)} of ${many(job.requestedSlots, "slot")}`,
  cell: (job) => `${count(job.allocatedSlots)} / ${count(job.requestedSlots)}`,
  value: (job) => job.requestedSlots,
};
const BY: Column<Job> = {
  id: "user",
  head: "By",
  width: 52,
  least: 44,
  cell: (job) => <Avatar name={job.username} small />,
  value: (job) => job.username,
};
const POOL: Column<Job> = {
  id: "pool",
  head: "Pool",
  width: 110,
  least: 80,
  most: 160,
  cell: (job) => <Cut>{job.resourcePool}</Cut>,
  value: (job) => job.resourcePool,
};
const REASON: Column<Job> = {
  id: "reason",
  head: "Waits for",
  least: 200,
  wrap: true,
  under: true,
  cell: (job) => <span className="ink2">{job.waitsFor}</span>,
};
const STARTS: Column<Job> = {
  id: "starts",
  head: "Starts",
  width: 120,
  least: 104,
  small: true,
  cell: (job) => <span className={job.canStart ? (job.startsIn === null ? "ink3" : "m") : "bad m"}>{startsAt(job)}</span>,
  value: (job) => job.startsIn,
};
const WAITS: Column<Job> = {
  id: "waits",
  head: "Waits",
  width: 98,
  least: 90,
  num: true,
  cell: (job) => <span className="ink2">{duration(since(job))}</span>,
  value: since,
};
const SUBMITTED: Column<Job> = {
  id: "submitted",
  head: "Submitted",
  width: 98,
  num: true,
  cell: (job) => (
    <span className="ink2">
      <Time at={job.submissionTime} />
    </span>
  ),
  value: since,
};
const WILL: Column<Job> = {
  id: "will",
  head: "Will",
  cell: (job) => <span className="ink2">{will(job)}</span>,
  value: (job) => job.endsIn,
};
const PRIORITY: Column<Job> = {
  id: "priority",
  head: "Priority",
  width: 78,
  num: true,
  cell: (job) => job.priority,
  value: (job) => job.priority,
};
const WEIGHT: Column<Job> = {
  id: "weight",
  head: "Weight",
  width: 78,
  num: true,
  cell: (job) => job.weight,
  value: (job) => job.weight,
};

/** The column that decides who comes first, unless all values are equal. */
export const shares = (jobs: Job[], ranks: boolean): Column<Job>[] => {
  const [column, of] = ranks ? [PRIORITY, (job: Job) => job.priority] : [WEIGHT, (job: Job) => job.weight];
  return new Set(jobs.map(of)).size > 1 ? [column] : [];
};

/** `grip` is shown before the position of a job that can be moved. */
export const ofWaiting = (
  grip: (job: Job) => React.ReactNode,
  place: (job: Job) => number,
  ordered: boolean,
  several: boolean,
  share: Column<Job>[],
): Column<Job>[] => [
  ...(ordered
    ? [
        {
          id: "ahead",
          head: "#",
          width: PLACE_PX,
          cell: (job: Job) => (
            <span className="check nowrap">
              {grip(job)}
              {place(job)}
            </span>
          ),
        },
      ]
    : []),
  { ...NAME, width: NAME_PX },
  { ...STATE, small: false, under: false },
  REASON,
  STARTS,
  ...share,
  // Telephones have no room for it: the reason says how many it needs.
  { ...SLOTS, small: false },
  ...(several ? [POOL] : []),
  WAITS,
  BY,
];

/** Aligned with the columns of waiting jobs above; `ordered` says that those begin with a position. */
export const ofRunning = (ordered: boolean, several: boolean, share: Column<Job>[]): Column<Job>[] => [
  { ...NAME, width: ordered ? PLACE_PX + NAME_PX : NAME_PX },
  STATE,
  WILL,
  ...share,
  SLOTS,
  ...(several ? [POOL] : []),
  SUBMITTED,
  BY,
];
