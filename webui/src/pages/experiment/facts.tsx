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
  const counts = { running: 0, done: 0, stopped: 0, failed: 0, paused: 0, waiting: 0 };
  for (const trial of trials) {
    const state = stateName(trial.state);
    if (stopped.has(trial.id)) counts.stopped++;
    else if (RUNS.has(state)) counts.running++;
    else if (state === "COMPLETED") counts.done++;
    else if (state === "ERROR") counts.failed++;
    else if (state === "PAUSED") counts.paused++;
    else if (!isOver(state)) counts.waiting++;
  }
  return counts;
}

/** The share of the search that is done. One that was stopped or failed came as far as its trials did. */
export function progressOf(
  experiment: Pick<Experiment, "state" | "progress">,
  count: Pick<ReturnType<typeof counted>, "done" | "stopped">,
  total: number,
): number {
  if (!isOver(experiment.state)) return experiment.progress ?? 0;
  if (experiment.state === "STATE_COMPLETED") return 1;
  return total ? (count.done + count.stopped) / total : 0;
}

export function ExperimentFacts({
  experiment,
  trials,
  stopped,
  job,
}: {
  experiment: Experiment;
  trials: Trial[];
  stopped: ReadonlySet<number>;
  job?: JobSummary;
}) {
  const spent = useSpent(experiment.id);
  const over = isOver(experiment.state);
  const count = counted(trials, stopped);
  const most = experiment.config.searcher?.max_trials as number | undefined;
  const total = Math.max(most ?? 0, trials.length);
  const phrases = [
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
  const progress = progressOf(experiment, count, total);
  const bar =
    total > 1
      ? parts
      : [{ share: progress, colour: over && experiment.state !== "STATE_ERROR" ? "var(--done)" : stateColour(experiment.state) }];
  return (
    <Figures label="The experiment in figures">
      <Figure
        name="Progress"
        value={`${Math.round(progress * 100)} %`}
        unit={total > 1 ? `${trials.length.toLocaleString("en")} of ${many(total, "trial")}` : undefined}
        note={phrases.join(" · ") || "no trial has begun"}
      >
        <Meter label={phrases.join(", ") || "Progress"} parts={bar} />
      </Figure>
      <Best experiment={experiment} trials={trials} />
      <End experiment={experiment} spent={spent} job={job} />
      <Holds experiment={experiment} running={count.running} waiting={count.waiting} />
      <Cost experiment={experiment} trials={trials} />
    </Figures>
  );
}

function Best({ experiment, trials }: { experiment: Experiment; trials: Trial[] }) {
  const value = experiment.bestTrialSearcherMetric;
  const best = trials.find((trial) => trial.id === experiment.bestTrialId);
  if (value === null || !best) return <Figure name="Best trial" value="–" note={`no ${experiment.searcherMetric} yet`} />;
  const varied = Object.entries(flat(best.hparams)).filter(([name, mine]) => trials.some((other) => flat(other.hparams)[name] !== mine));
  const at = best.bestValidation ? ` at ${tickText(best.bestValidation.totalBatches)}` : "";
  const with_ = varied.slice(0, 2).map(([name, mine]) => `${name.split(".").at(-1)} ${number(mine, 3)}`);
  return (
    <Figure
      name="Best trial"
      value={digits(value)}
      unit={<Link to={`/experiments/${experiment.id}/trials/${best.id}/overview`}>trial {best.id}</Link>}
      note={[`${experiment.searcherMetric}${at}`, ...with_].join(" · ")}
    />
  );
}

function End({ experiment, spent, job }: { experiment: Experiment; spent: ReturnType<typeof useSpent>; job?: JobSummary }) {
  const forecast = useForecast(experiment, spent);
  const paused = experiment.state === "STATE_PAUSED";
  const since = spent?.stretches.at(-1)?.since;
  if (isOver(experiment.state))
    return (
      <Figure
        name={`${stateName(experiment.state) === "ERROR" ? "Failed" : "Ended"} after`}
        value={<span title="Time during which at least one trial ran">{duration(experiment.runningTime)}</span>}
        note={[...idleOf(spent), experiment.endTime && `ended ${clock(Date.parse(experiment.endTime))}`].filter(Boolean).join(" · ")}
      />
    );
  if (paused)
    return <Figure name="Ends" value="paused" note={since ? `for ${duration((Date.now() - Date.parse(since)) / 1000)}` : undefined} />;
  if (!forecast)
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
      value={`in ${roughly(forecast.left)}`}
      unit={forecast.spread >= 1 ? `± ${roughly(forecast.spread)}` : undefined}
      note={`about ${clock(Date.now() + forecast.left * 1000)}, at the current rate`}
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

function Holds({ experiment, running, waiting }: { experiment: Experiment; running: number; waiting: number }) {
  const idle = stateName(experiment.state) === "PAUSED" ? " · none while it is paused" : " · none waiting";
  if (experiment.unmanaged) return <Figure name="Runs" value="outside" note="not on agents of this cluster" />;
  const each = (experiment.config.resources?.slots_per_trial as number | undefined) ?? 1;
  const wanted = (running + waiting) * each;
  return (
    <Figure
      name={isOver(experiment.state) ? "Held" : "Holds"}
      value={isOver(experiment.state) ? each : running * each}
      unit={isOver(experiment.state) ? `slot${each === 1 ? "" : "s"} a trial` : wanted ? `of ${many(wanted, "slot")}` : undefined}
      note={
        <>
          pool <Link to={`/resourcepool/${encodeURIComponent(experiment.resourcePool)}`}>{experiment.resourcePool}</Link>
          {!isOver(experiment.state) && (waiting ? ` · ${many(waiting, "trial")} wait` : idle)}
        </>
      }
    />
  );
}

/** Slots multiplied by the time that runs held them. */
function Cost({ experiment, trials }: { experiment: Experiment; trials: Trial[] }) {
  const each = (experiment.config.resources?.slots_per_trial as number | undefined) ?? 1;
  const hours = (trials.reduce((sum, trial) => sum + trial.wallClockTime, 0) * each) / 3600;
  const most = Math.max(0, ...trials.map((trial) => trial.restarts));
  const allowed = experiment.config.max_restarts as number | undefined;
  return (
    <Figure
      name={isOver(experiment.state) ? "Cost" : "Cost so far"}
      value={number(hours, hours < 1 ? 2 : 3)}
      unit="slot hours"
      note={
        <>
          {allowed === undefined ? "" : `restarts ${most} of ${allowed} · `}
          <Link to={`/experiments/${experiment.id}/hyperparameters?v=timeline`}>timeline</Link>
        </>
      }
    />
  );
}
