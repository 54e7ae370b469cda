/** The five key figures of a trial's page. */

import { useRef } from "react";
import { Link } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { tickText } from "../../charts/export";
import { clock, digits, duration, isOver, measured, number, roughly } from "../../parts/format";
import { Figure, Figures } from "../../ui/figures";
import { Meter } from "../../ui/meter";
import { lengthOf } from "../experiment/lengths";
import { bestValueOf } from "../experiment/listed";
import { forecast } from "../experiment/spent";
import type { Place } from "./place";
import { lastValidated } from "./validated";

export function TrialFacts({ trial, experiment, place }: { trial: Trial; experiment?: Experiment; place: Place }) {
  const metric = experiment?.searcherMetric ?? "";
  const best = bestValueOf(trial, metric);
  const latest = trial.latestValidation?.metrics.avgMetrics[metric];
  const { count, unit } = lengthOf(experiment?.config.searcher?.max_length);
  const over = isOver(trial.state);
  const full = !unit || unit === "batches" ? count : 0;
  const done = full ? Math.min(1, trial.totalBatchesProcessed / full) : over ? 1 : 0;
  const paused = trial.state === "STATE_PAUSED";
  const colour =
    trial.state === "STATE_ERROR"
      ? "error"
      : place.stopped || trial.state === "STATE_CANCELED"
        ? "off"
        : over
          ? "done"
          : paused
            ? "paused"
            : "running";
  return (
    <Figures label="The trial in figures">
      <Figure
        name="Batches"
        value={tickText(trial.totalBatchesProcessed)}
        unit={full ? `of ${tickText(full)}` : undefined}
        note={over ? reached(trial, done, place.stopped) : trial.wallClockTime ? `ran ${duration(trial.wallClockTime)}` : "has not run yet"}
      >
        <Meter label={`${Math.round(done * 100)} %`} parts={[{ share: done, colour: `var(--${colour})` }]} />
      </Figure>
      <Figure
        name="Best"
        value={best === null ? "–" : digits(best)}
        unit={trial.bestValidation ? `at ${tickText(trial.bestValidation.totalBatches)}` : undefined}
        note={
          place.against
            ? `${metric}, ${number(place.against.by, 2)} ${place.rank === 1 ? "better than" : "behind"} trial ${place.against.id}`
            : metric || undefined
        }
      />
      <Figure name="Latest" value={measured(latest) || "–"} bad={typeof latest === "string"} note={lastValidated(trial, metric)} />
      <End trial={trial} experiment={experiment} done={done} />
      <Figure
        name="Restarts"
        value={trial.restarts}
        unit={experiment?.config.max_restarts === undefined ? undefined : `of ${experiment.config.max_restarts}`}
        note={trial.restarts ? <Link to={`/experiments/${trial.experimentId}/trials/${trial.id}/story`}>why</Link> : neverAgain(trial)}
      />
    </Figures>
  );
}

/** How far it came, once it is over. */
function reached({ state }: Trial, done: number, stopped: boolean): string {
  if (stopped) return "stopped early";
  if (done < 1) return `at ${Math.round(done * 100)} %`;
  return state === "STATE_COMPLETED" ? "to its end" : "before it ended";
}

/** Why it was never restarted. */
export const neverAgain = ({ state }: Pick<Trial, "state">) =>
  state === "STATE_ERROR"
    ? "it failed at its first try"
    : state === "STATE_COMPLETED"
      ? "it ran through"
      : isOver(state)
        ? "it was ended"
        : "none so far";

function End({ trial, experiment, done }: { trial: Trial; experiment?: Experiment; done: number }) {
  const seen = useRef<[at: number, done: number] | null>(null);
  if (isOver(trial.state))
    return (
      <Figure
        name={`${trial.state === "STATE_ERROR" ? "Failed" : "Ended"} after`}
        value={trial.wallClockTime ? <span title="Time during which it ran">{duration(trial.wallClockTime)}</span> : "–"}
        note={trial.endTime ? `ended ${clock(Date.parse(trial.endTime))}` : undefined}
      />
    );
  if (trial.state === "STATE_PAUSED")
    return (
      <Figure
        name="Ends"
        value="paused"
        note={trial.checkpointCount ? "continues from its latest checkpoint" : "starts from the beginning: no checkpoint yet"}
      />
    );
  if (experiment?.canStart === false) return <Figure name="Ends" value="–" note="it cannot start as it is" />;
  const now = Date.now() / 1000;
  seen.current ??= [now, done];
  const end = forecast(done, trial.wallClockTime, { gained: done - seen.current[1], tookS: now - seen.current[0] });
  return end ? (
    <Figure
      name="Ends"
      value={`in ${roughly(end.left)}`}
      unit={end.spread >= 1 ? `± ${roughly(end.spread)}` : undefined}
      note="if it trains to its full length"
    />
  ) : (
    <Figure name="Ends" value="–" note={trial.wallClockTime ? "its pace is not known yet" : "it has not started yet"} />
  );
}
