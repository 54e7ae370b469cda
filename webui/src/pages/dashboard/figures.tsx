import { useData } from "../../api/data";
import type { Job } from "../../api/types";
import { little, many, number, roughly } from "../../parts/format";
import { Figure, Figures } from "../../ui/figures";
import { Bars, Meter } from "../../ui/meter";
import { isStuck, startsAt } from "../queue/facts";
import { Spark } from "../../ui/spark";

const REST_MS = 3000;
const DAYS = 14;
const WEEK = 7;
const DAY_MS = 86_400_000;
const NAMED = 2;
const MOST_PARTS = 6;

interface Used {
  day: string;
  user: string;
  slotHours: number;
}
interface Pool {
  name: string;
  slotsAvailable: number;
  slotsUsed: number;
}

const today = (back: number) => new Date(Date.now() - back * DAY_MS).toISOString().slice(0, 10);

/** Hours of each of the last days; the last entry is today. */
export function byDay(usage: Used[], days: number, fits: (usage: Used) => boolean): number[] {
  return Array.from({ length: days }, (_, at) => today(days - 1 - at)).map((day) =>
    usage.filter((usage) => usage.day === day && fits(usage)).reduce((sum, usage) => sum + usage.slotHours, 0),
  );
}

const plural = (many: number, singular: string, more = `${singular}s`) => (many === 1 ? singular : more);

/** As many names as fit, with their slot counts, which always fit. */
const Holders = ({ jobs, rest }: { jobs: Job[]; rest: number }) => (
  <span className="job-names">
    {jobs.map((job, at) => (
      <span key={job.jobId} className="job-name" title={`${job.name}: ${many(job.allocatedSlots, "slot")}`}>
        {at > 0 && <span className="between"> · </span>}
        <span className="cut">{job.name}</span>
        <span> ({job.allocatedSlots})</span>
      </span>
    ))}
    {rest > 0 && (
      <span>
        <span className="between"> · </span>
        {rest} more
      </span>
    )}
  </span>
);

/** Is there room? What runs, what waits, and what have I used? */
export function Answer({ user }: { user: string }) {
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["cluster", "queue"], true, REST_MS);
  const queue = useData<{ jobs: Job[] }>("job-queues", ["queue", "experiments"], true, REST_MS);
  const used = useData<{ usage: Used[] }>(`cluster/usage?days=${DAYS}`, [], true);
  const slots = pools.data?.resourcePools.reduce((sum, resourcePool) => sum + resourcePool.slotsAvailable, 0) ?? 0;
  const busy = pools.data?.resourcePools.reduce((sum, resourcePool) => sum + resourcePool.slotsUsed, 0) ?? 0;
  const jobs = queue.data?.jobs ?? [];
  const running = jobs.filter((job) => job.allocatedSlots > 0).toSorted((a, b) => b.allocatedSlots - a.allocatedSlots);
  const waiting = jobs.filter((job) => job.summary.state === "STATE_QUEUED");
  const longest = waiting.toSorted((a, b) => Date.parse(a.submissionTime) - Date.parse(b.submissionTime))[0];
  const next = waiting.filter((job) => job.startsIn !== null && !isStuck(job)).toSorted((a, b) => a.startsIn! - b.startsIn!)[0];
  const usage = used.data?.usage ?? [];
  const days = byDay(usage, DAYS, () => true);
  const mine = byDay(usage, DAYS, (usage) => usage.user === user);
  const week = (of: number[]) => little(of.slice(-WEEK).reduce((sum, hours) => sum + hours, 0));
  const rest = running.length - NAMED;
  return (
    <Figures>
      <Figure name="Slots in use" value={busy} unit={`of ${slots}`} to="/clusters" note={`${slots - busy} free`}>
        <Bars
          values={days}
          title={`Slot hours by day, the last ${DAYS} days`}
          labels={days.map((hours) => `${number(hours, 3)} slot hours`)}
        />
      </Figure>
      <Figure
        name="Running"
        value={running.length}
        unit={plural(running.length, "job")}
        to="/jobs"
        note={running.length ? <Holders jobs={running.slice(0, NAMED)} rest={rest} /> : "none running"}
      >
        <Meter
          label="Slots by job"
          parts={running.slice(0, MOST_PARTS).map((job, at) => ({
            share: slots ? job.allocatedSlots / slots : 0,
            colour: `var(--s${at + 1})`,
            title: `${job.name}: ${many(job.allocatedSlots, "slot")}`,
          }))}
        />
      </Figure>
      <Figure
        name="Waiting"
        value={waiting.length}
        unit={plural(waiting.length, "job")}
        to="/jobs"
        note={longest ? `longest ${roughly((Date.now() - Date.parse(longest.submissionTime)) / 1000)}: ${longest.name}` : "none waiting"}
      >
        {longest && (
          <span className="xs ink3 two" title={longest.waitsFor}>
            {next ? `next start ${startsAt(next)}: ${next.name}` : longest.waitsFor}
          </span>
        )}
      </Figure>
      <Figure name="My slot hours" value={week(mine)} unit="this week" note={`of ${week(days)} by everyone`}>
        <Spark values={mine} title={`My slot hours by day, the last ${DAYS} days`} colour="var(--accent)" width={150} height={30} />
      </Figure>
    </Figures>
  );
}
