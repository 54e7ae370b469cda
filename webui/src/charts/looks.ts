/** How the trials of a page look: by choice, by a value, or by group. */

import { number } from "../parts/format";
import { type Chosen, REST, slotColour, slotDash, SLOTS } from "./colours";

/** The properties of a trial that may decide its colour. */
export interface Known {
  id: number;
  experimentId: number;
  state: string;
  hparams: Record<string, unknown>;
  /** The value of the searcher's metric. */
  value: number | null;
  tags: string[];
}

export interface Look {
  /** A token, or a position on the scale such as `share:0.7`. */
  colour: string;
  dash: number[];
  /** In front, thick and with its name at the end. */
  front: boolean;
  /** The value that decided the colour. */
  why: string;
}

export type Looks = ReadonlyMap<number, Look>;

/** Empty to colour chosen trials; otherwise metric, state, experiment, tag or `hp.NAME`. */
export type By = string;

const STATES: Record<string, string> = {
  COMPLETED: "--done",
  ERROR: "--error",
  PAUSED: "--paused",
  QUEUED: "--queued",
  CANCELED: "--off",
  STOPPED: "--off",
  RUNNING: "--running",
  STARTING: "--running",
};
export const stateTint = (state: string) => STATES[state] ?? "--off";

const whole = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value ?? null));

/** The value that a trial is coloured or grouped by. */
export function kindOf(trial: Known, by: By): unknown {
  if (by.startsWith("hp.")) return trial.hparams[by.slice(3)];
  if (by === "metric") return trial.value;
  if (by === "state") return trial.state;
  if (by === "tag") return trial.tags.join(", ") || "no tag";
  return trial.experimentId;
}

/** The metric and columns with more than three distinct numbers use the scale; everything else gets distinct colours. */
const isScale = (values: unknown[], by: By) => {
  const present = values.filter((value) => value !== null && value !== undefined);
  return by === "metric" || (by !== "experiment" && present.every((value) => typeof value === "number") && new Set(present).size > 3);
};

export interface Scale {
  low: number;
  high: number;
  log: boolean;
}

const WIDE = 50;

export function scaleOf(values: unknown[], asked?: "log" | "linear"): Scale {
  const numbers = values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  const low = numbers.reduce((least, value) => Math.min(least, value), Infinity);
  const high = numbers.reduce((most, value) => Math.max(most, value), -Infinity);
  return { low, high, log: low > 0 && (asked ? asked === "log" : high / low > WIDE) };
}

export function shareOn({ low, high, log }: Scale, value: number): number {
  const map = (value: number) => (log ? Math.log(value) : value);
  return high > low ? (map(value) - map(low)) / (map(high) - map(low)) : 1;
}

interface Asked {
  by: By;
  chosen: Chosen;
  /** Whether less is better for the searcher's metric. */
  smaller: boolean;
  /** Scale of the hyperparameter, from the configuration. */
  scale?: "log" | "linear";
}

export function looksOf(trials: Known[], { by, chosen, smaller, scale }: Asked): Looks {
  if (!by) return new Map(trials.map((value) => [value.id, ofChosen(value, chosen)]));
  const values = trials.map((value) => kindOf(value, by));
  if (isScale(values, by)) {
    const span = scaleOf(values, by === "metric" ? "linear" : scale);
    return new Map(trials.map((value, at) => [value.id, ofScale(span, values[at], by === "metric" && smaller, chosen.has(value.id))]));
  }
  const kinds = [...new Set(values.map(whole))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return new Map(trials.map((value, at) => [value.id, ofKind(whole(values[at]), kinds, by, chosen.has(value.id))]));
}

const ofChosen = ({ id }: Known, chosen: Chosen): Look => {
  const slot = chosen.get(id);
  return { colour: slotColour(slot), dash: slotDash(slot), front: slot !== undefined, why: slot ? "chosen" : "other" };
};

function ofScale(span: Scale, value: unknown, turned: boolean, front: boolean): Look {
  if (typeof value !== "number" || !Number.isFinite(value)) return { colour: REST, dash: [], front: false, why: "no value" };
  const share = shareOn(span, value);
  return { colour: `share:${(turned ? 1 - share : share).toFixed(3)}`, dash: [], front, why: number(value) };
}

function ofKind(kind: string, kinds: string[], by: By, front: boolean): Look {
  if (by === "state") return { colour: stateTint(kind), dash: [], front, why: kind };
  const slot = kinds.indexOf(kind) + 1;
  return slot <= SLOTS
    ? { colour: slotColour(slot), dash: slotDash(slot), front, why: kind }
    : { colour: REST, dash: [], front, why: kind };
}

/** Legend of charts that are coloured by kind: each kind with its colour and number of trials. */
export function kindsOf(looks: Looks): { why: string; colour: string; dash: number[]; count: number }[] {
  const kinds = new Map<string, { why: string; colour: string; dash: number[]; count: number }>();
  for (const { why, colour, dash } of looks.values()) {
    const kind = kinds.get(why) ?? { why, colour, dash, count: 0 };
    kind.count++;
    kinds.set(why, kind);
  }
  return [...kinds.values()].sort((a, b) => a.why.localeCompare(b.why, "en", { numeric: true }));
}
