/** Columns of a table of trials. */

import { Link } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { type Chosen, slotColour } from "../../charts/colours";
import type { Decision } from "../../charts/search/rungs";
import { digits, duration, flat, measured, number, size } from "../../parts/format";
import { State } from "../../ui/state";
import type { Column } from "../../ui/table";
import type { Value } from "../../ui/table/types";
import { NUMBER_PX } from "../../ui/table/widths";
import { Time } from "../../ui/text";

export const metricOf = (trial: Trial, which: "bestValidation" | "latestValidation", metric: string) => {
  const value = trial[which]?.metrics.avgMetrics[metric];
  return typeof value === "number" ? value : null;
};

const bytes = (files: Record<string, string>) => Object.values(files).reduce((sum, bytes) => sum + Number(bytes), 0);

/** A trial that the search closed counts as stopped early, not as completed. */
export const shownState = (trial: Trial, decided: Map<number, Decision>) =>
  decided.get(trial.id)?.ending === "stopped" ? "STOPPED" : trial.state;

interface Hyperparameter {
  name: string;
  varies: boolean;
  /** Its numbers have more digits than are shown, so that all of them are shown with as many. */
  isFine: boolean;
  isText: boolean;
}

const SHOWN_DIGITS = 4;
const isFine = (value: unknown) =>
  typeof value === "number" && !Number.isInteger(value) && Number(value.toPrecision(SHOWN_DIGITS)) !== value;

/** Hyperparameters, those that differ first; constant ones are hidden until the user picks them. */
export function hyperparametersOf(trials: Trial[]): Hyperparameter[] {
  const all = trials.map((trial) => flat(trial.hparams));
  const names = [...new Set(all.flatMap((values) => Object.keys(values)))];
  const described = names.map((name) => ({
    name,
    varies: all.length < 2 || new Set(all.map((values) => JSON.stringify(values[name]))).size > 1,
    isFine: all.some((values) => isFine(values[name])),
    isText: all.some((values) => typeof values[name] === "string"),
  }));
  return described.sort((a, b) => Number(b.varies) - Number(a.varies));
}

const plain = (value: unknown): Value =>
  typeof value === "number" || typeof value === "string" || typeof value === "boolean"
    ? value
    : value == null
      ? null
      : JSON.stringify(value);

function metric(experiment: Experiment, id: string, head: string, which: "bestValidation" | "latestValidation"): Column<Trial> {
  const read = (trial: Trial) => metricOf(trial, which, experiment.searcherMetric);
  return {
    id,
    head,
    num: true,
    width: id === "best" ? 120 : NUMBER_PX,
    small: id === "best",
    value: read,
    title: (trial) => String(trial[which]?.metrics.avgMetrics[experiment.searcherMetric] ?? ""),
    cell: (trial) => measured(trial[which]?.metrics.avgMetrics[experiment.searcherMetric]),
  };
}

interface Known {
  experiment: Experiment;
  names: Hyperparameter[];
  decided: Map<number, Decision>;
  chosen: Chosen;
}

export function columnsOf({ experiment, names, decided, chosen }: Known): Column<Trial>[] {
  return [
    {
      id: "id",
      head: "Trial",
      name: true,
      width: 96,
      least: 76,
      value: (trial) => trial.id,
      cell: (trial) => (
        <>
          <i className="sw" style={{ background: `var(${slotColour(chosen.get(trial.id))})` }} aria-hidden />{" "}
          <Link to={`/experiments/${experiment.id}/trials/${trial.id}/overview`}>{trial.id}</Link>
        </>
      ),
    },
    {
      id: "state",
      head: "State",
      width: 130,
      small: true,
      under: true,
      value: (trial) => shownState(trial, decided),
      cell: (trial) => <State state={shownState(trial, decided)} why={trial.stateReason} />,
    },
    {
      id: "totalBatchesProcessed",
      head: "Batches",
      num: true,
      width: 90,
      least: 76,
      value: (trial) => trial.totalBatchesProcessed,
      cell: (trial) => number(trial.totalBatchesProcessed),
    },
    metric(experiment, "best", `Best ${experiment.searcherMetric}`, "bestValidation"),
    metric(experiment, "latest", "Latest", "latestValidation"),
    ...(decided.size
      ? [
          {
            id: "search",
            head: "Search",
            width: 240,
            most: 320,
            value: (trial: Trial) => decided.get(trial.id)?.text ?? "",
            title: (trial: Trial) => decided.get(trial.id)?.text,
            cell: (trial: Trial) => decided.get(trial.id)?.text ?? "",
          },
        ]
      : []),
    ...names.map(
      ({ name, varies, isFine, isText }): Column<Trial> => ({
        id: `hp.${name}`,
        head: name,
        num: !isText,
        width: 100,
        least: NUMBER_PX,
        folder: "Hyperparameters",
        off: !varies,
        value: (trial) => plain(flat(trial.hparams)[name]),
        title: (trial) => String(plain(flat(trial.hparams)[name]) ?? ""),
        cell: (trial) => {
          const value = plain(flat(trial.hparams)[name]);
          return isFine && typeof value === "number" ? digits(value) : number(value, SHOWN_DIGITS);
        },
      }),
    ),
    { id: "restarts", head: "Restarts", num: true, width: 80, value: (trial) => trial.restarts, cell: (trial) => trial.restarts },
    {
      id: "checkpoint",
      head: "Best checkpoint",
      width: 150,
      cell: ({ id, bestCheckpoint: best }) =>
        best && (
          <Link
            to={`/experiments/${experiment.id}/trials/${id}/checkpoints?checkpoint=${best.uuid}`}
            title={`at ${best.totalBatches} batches`}
          >
            <code>{best.uuid.slice(0, 8)}</code> <span className="ink3">{size(bytes(best.resources))}</span>
          </Link>
        ),
    },
    {
      id: "totalCheckpointSize",
      head: "Stored",
      num: true,
      width: 80,
      value: (trial) => Number(trial.totalCheckpointSize),
      cell: (trial) => size(trial.totalCheckpointSize),
    },
    { id: "startTime", head: "Started", width: 110, value: (trial) => trial.startTime, cell: (trial) => <Time at={trial.startTime} /> },
    {
      id: "wallClockTime",
      head: "Ran",
      num: true,
      width: 90,
      value: (trial) => trial.wallClockTime,
      cell: (trial) => duration(trial.wallClockTime),
    },
  ];
}
