/** What the REST API answers: its own records (`schema.ts`, made by `make types`), closer where pages know more of them. */

import type { components } from "./schema";

type Records = components["schemas"];
/** A record with other words for some of its fields. */
type With<Base, Fields> = Omit<Base, keyof Fields> & Fields;

export type Json = unknown;
export type Config = Record<string, any>;

/** States are compared by their names, among them those of pages alone. */
export type Experiment = With<Records["Experiment"], { state: string; config: Config }>;

export interface Validation {
  endTime: string;
  totalBatches: number;
  metrics: { avgMetrics: Record<string, Json> };
}

export type Trial = With<
  Records["Trial"],
  {
    state: string;
    hparams: Record<string, Json>;
    bestValidation: Validation | null;
    latestValidation: Validation | null;
    bestCheckpoint: { uuid: string; totalBatches: number; resources: Record<string, string> } | null;
    summaryMetrics: Record<string, Record<string, Summary>>;
  }
>;

export interface Summary {
  count: number;
  last: Json;
  min?: number;
  max?: number;
  mean?: number;
  type: string;
}

export type Checkpoint = With<
  Records["Checkpoint"],
  { state: string; training: { trialId: number; experimentId: number; searcherMetric: number | null } | null }
>;
export type Slot = Records["Slot"];
export type Agent = Records["Agent"];
export type Job = Records["Job"];
export type Pagination = Records["Pagination"];
export type User = Records["User"];
export type Webhook = Records["Webhook"];
export type WebhookDelivery = Records["WebhookDelivery"];

export interface LogLine {
  id: string;
  timestamp: string;
  level: string;
  rankId: number | null;
  allocationId: string | null;
  agentId: string | null;
  log: string;
  source: string;
  stdtype: string;
}
