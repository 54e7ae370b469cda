/** The five key figures of an experiment's page. */

import { Link } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { tickText } from "../../charts/export";
import { clock, count as thousands, digits, duration, flat, isOver, many, number, roughly, stateName } from "../../parts/format";
import { Figure, Figures } from "../../ui/figures";
import { Meter } from "../../ui/meter";
import { stateColour } from "../../ui/state";
import { useForecast, useSpent } from "./spent";

export interface JobSummary {
  state: string;
  jobsAhead: number;
}

const RUNS = new Set(["RUNNING", "STARTING", "PULLING"]);

/** Number of trials per state; trials that the search closed have a state of their own. */
export function counted(trials: Trial[], stopped: ReadonlySet<number>) {
  const found = { running: 0, done: 0, stopped: 0, failed: 0, paused: 0, waiting: 0 };
  for (const trial of trials) {
    const state = stateName(trial.state);
    if (stopped.has(trial.id)) found.stopped++;
    else if (RUNS.has(state)) found.running++;
    else if (state === "COMPLETED") found.done++;
    else if (state === "ERROR") found.failed++;
    else if (state === "PAUSED") found.paused++;
    else if (!isOver(state)) found.waiting++;
  }
  return found;
}

export function ExperimentFacts({
  one,
  trials,
  stopped,
  job,
}: {
  one: Experiment;
  trials: Trial[];
  stopped: ReadonlySet<number>;
  job?: JobSummary;
}) {
  const spent = useSpent(one.id);
  const over = isOver(one.state);
  const count = counted(trials, stopped);
  const most = one.config.searcher?.max_trials as number | undefined;
  const total = Math.max(most ?? 0, trials.length);
  const told = [
    count.running && `${thousands(count.running)} ${over ? "ran" : "run"}`,
    count.paused && `${thousands(count.paused)} paused`,
    count.waiting && `${thousands(count.waiting)} wait`,
    count.done && `${thousands(count.done)} done`,
    count.stopped && `${thousands(count.stopped)} stopped early`,
    count.failed && `${thousands(count.failed)} failed`,
  ].filter(Boolean);
  const parts = [
    { share: count.done / total, colour: "var(--done)", title: `${count.done} done` },
    { share: count.running / total, colour: "var(--running)", title: `${count.running} running` },
    { share: count.paused / total, colour: "var(--paused)", title: `${count.paused} paused` },
    { share: count.failed / total, colour: "var(--error)", title: `${count.failed} failed` },
    { share: count.stopped / total, colour: "var(--off)", title: `${count.stopped} stopped early` },
  ];
  const progress = one.progress ?? (over ? 1 : 0);
  const bar =
    total > 1 ? parts : [{ share: progress, colour: over && one.state !== "STATE_ERROR" ? "var(--done)" : stateColour(one.state) }];
  return (
    <Figures label="The experiment in figures">
      <Figure
        name="Progress"
        value={`${Math.round(progress * 100)} %`}
        unit={total > 1 ? `${trials.length.toLocaleString("en")} of ${many(total, "trial")}` : undefined}
        note={told.join(" · ") || "no trial has begun"}
      >
        <Meter label={told.join(", ") || "Progress"} parts={bar} />
      </Figure>
      <Best one={one} trials={trials} />
      <End one={one} spent={spent} job={job} />
      <Holds one={one} running={count.running} waiting={count.waiting} />
      <Cost one={one} trials={trials} />
    </Figures>
  );
}

function Best({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const value = one.bestTrialSearcherMetric;
  const best = trials.find((trial) => trial.id === one.bestTrialId);
  if (value === null || !best) return <Figure name="Best trial" value="–" note={`no ${one.searcherMetric} yet`} />;
  const varied = Object.entries(flat(best.hparams)).filter(([name, mine]) => trials.some((other) => flat(other.hparams)[name] !== mine));
  const at = best.bestValidation ? ` at ${tickText(best.bestValidation.totalBatches)}` : "";
  const with_ = varied.slice(0, 2).map(([name, mine]) => `${name.split(".").at(-1)} ${number(mine, 3)}`);
  return (
    <Figure
      name="Best trial"
      value={digits(value)}
      unit={<Link to={`/experiments/${one.id}/trials/${best.id}/overview`}>trial {best.id}</Link>}
      note={[`${one.searcherMetric}${at}`, ...with_].join(" · ")}
    />
  );
}

function End({ one, spent, job }: { one: Experiment; spent: ReturnType<typeof useSpent>; job?: JobSummary }) {
  const found = useForecast(one, spent);
  const paused = one.state === "STATE_PAUSED";
  const since = spent?.stretches.at(-1)?.since;
  if (isOver(one.state))
    return (
      <Figure
        name={`${stateName(one.state) === "ERROR" ? "Failed" : "Ended"} after`}
        value={<span title="Time during which at least one trial ran">{duration(one.runningTime)}</span>}
        note={[...idleOf(spent), one.endTime && `ended ${clock(Date.parse(one.endTime))}`].filter(Boolean).join(" · ")}
      />
    );
  if (paused)
    return <Figure name="Ends" value="paused" note={since ? `for ${duration((Date.now() - Date.parse(since)) / 1000)}` : undefined} />;
  if (!found)
    return (
      <Figure
        name="Ends"
        value="–"
        note={job && job.jobsAhead > 0 ? `${many(job.jobsAhead, "job")} ahead in the queue` : "its pace is not known yet"}
      />
    );
  return (
    <Figure
      name="Ends"
      value={`in ${roughly(found.left)}`}
      unit={found.spread >= 1 ? `± ${roughly(found.spread)}` : undefined}
      note={`about ${clock(Date.now() + found.left * 1000)}, at the current rate`}
    />
  );
}

const IDLE: [string, string][] = [
  ["waited", "queued"],
  ["paused", "paused"],
];
/** The time that does not count as running, where there is any worth telling. */
const idleOf = (spent: ReturnType<typeof useSpent>) =>
  IDLE.filter(([what]) => (spent?.seconds[what] ?? 0) >= NOTABLE_S).map(([what, word]) => `${word} ${duration(spent!.seconds[what]!)}`);
const NOTABLE_S = 30;

function Holds({ one, running, waiting }: { one: Experiment; running: number; waiting: number }) {
  const idle = stateName(one.state) === "PAUSED" ? " · none while it is paused" : " · none waiting";
  if (one.unmanaged) return <Figure name="Runs" value="outside" note="not on agents of this cluster" />;
  const each = (one.config.resources?.slots_per_trial as number | undefined) ?? 1;
  const wanted = (running + waiting) * each;
  return (
    <Figure
      name={isOver(one.state) ? "Held" : "Holds"}
      value={isOver(one.state) ? each : running * each}
      unit={isOver(one.state) ? `slot${each === 1 ? "" : "s"} a trial` : wanted ? `of ${many(wanted, "slot")}` : undefined}
      note={
        <>
          pool <Link to={`/resourcepool/${encodeURIComponent(one.resourcePool)}`}>{one.resourcePool}</Link>
          {!isOver(one.state) && (waiting ? ` · ${many(waiting, "trial")} wait` : idle)}
        </>
      }
    />
  );
}

/** Slots multiplied by the time that runs held them. */
function Cost({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const each = (one.config.resources?.slots_per_trial as number | undefined) ?? 1;
  const hours = (trials.reduce((sum, trial) => sum + trial.wallClockTime, 0) * each) / 3600;
  const most = Math.max(0, ...trials.map((trial) => trial.restarts));
  const allowed = one.config.max_restarts as number | undefined;
  return (
    <Figure
      name={isOver(one.state) ? "Cost" : "Cost so far"}
      value={number(hours, hours < 1 ? 2 : 3)}
      unit="slot hours"
      note={
        <>
          {allowed === undefined ? "" : `restarts ${most} of ${allowed} · `}
          <Link to={`/experiments/${one.id}/hyperparameters?v=timeline`}>timeline</Link>
        </>
      }
    />
  );
}
