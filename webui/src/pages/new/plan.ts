/** What a configuration would do: how many trials, how long, at what cost, and when it would start. */

import type { Config, Experiment, Trial } from "../../api/types";
import { duration, many, number } from "../../parts/format";

export interface Simulation {
  trials: { operations: { type: string; length?: number }[]; occurrences: number }[];
}
export interface Pool {
  name: string;
  slotsAvailable: number;
  slotsUsed: number;
  slotsPerAgent: number;
  stats: { queuedCount: number; scheduledCount: number };
}
export interface Amount {
  trials: number;
  /** Of all trials together, in the unit of the searcher's length. */
  length: number;
  unit: string;
  slots: number;
}

/** The unit of the lengths in a configuration. */
export function unitOf(config: Config): string {
  const length = config.searcher?.max_length;
  return length && typeof length === "object" ? (Object.keys(length)[0] ?? "batches") : (config.searcher?.unit ?? "batches");
}

export function amount(config: Config, simulation: Simulation): Amount {
  const each = simulation.trials.map((trial) => Math.max(0, ...trial.operations.map((step) => step.length ?? 0)) * trial.occurrences);
  return {
    trials: simulation.trials.reduce((sum, trial) => sum + trial.occurrences, 0),
    length: each.reduce((sum, length) => sum + length, 0),
    unit: unitOf(config),
    slots: config.resources?.slots_per_trial ?? 1,
  };
}

/** Slot seconds per batch in an earlier experiment; null if unknown. */
export function pace(parent: Experiment | undefined, trials: Trial[]): number | null {
  const batches = trials.reduce((sum, trial) => sum + trial.totalBatchesProcessed, 0);
  const seconds = trials.reduce((sum, trial) => sum + trial.wallClockTime, 0) * (parent?.config.resources?.slots_per_trial ?? 1);
  return parent && batches > 0 && seconds > 0 ? seconds / batches : null;
}

export function cost(wanted: Amount, config: Config, perBatch: number | null): string {
  if (perBatch === null) return "";
  const perEpoch =
    config.records_per_epoch && config.hyperparameters?.global_batch_size?.val
      ? config.records_per_epoch / config.hyperparameters.global_batch_size.val
      : null;
  const batches = wanted.unit === "batches" ? wanted.length : wanted.unit === "epochs" && perEpoch ? wanted.length * perEpoch : null;
  if (batches === null) return "";
  const hours = (batches * perBatch) / 3600;
  return hours < 0.01 ? `${duration(hours * 3600)} of a slot` : `${number(hours, 2)} slot hours`;
}

/** When it would start, in a sentence. */
export function start(pool: Pool | undefined, slots: number): string {
  if (!pool) return "";
  const free = pool.slotsAvailable - pool.slotsUsed;
  const waiting = pool.stats.queuedCount;
  const of = `${free} of ${many(pool.slotsAvailable, "slot")} ${free === 1 ? "is" : "are"} free`;
  if (slots > pool.slotsAvailable)
    return `Never, as the pool is now: it needs ${many(slots, "slot")}, and ${pool.name} has ${pool.slotsAvailable}.`;
  if (!waiting && free >= slots) return `At once: ${of} in ${pool.name}.`;
  const before = waiting ? `${waiting === 1 ? "1 job waits" : `${waiting} jobs wait`} before it` : "nobody waits before it";
  return `When ${slots === 1 ? "a slot is" : `${slots} slots are`} free: ${of} in ${pool.name}, ${before}.`;
}
