/** What the REST API answers, as far as pages look at it. */

export type Json = unknown;
export type Config = Record<string, any>;

export interface Experiment {
  id: number;
  name: string;
  description: string;
  labels: string[];
  notes: string;
  startTime: string;
  endTime: string | null;
  state: string;
  stateReason: string;
  archived: boolean;
  numTrials: number;
  trialIds: number[];
  username: string;
  resourcePool: string;
  searcherType: string;
  searcherMetric: string;
  forkedFrom: number | null;
  progress: number | null;
  config: Config;
  originalConfig: string;
  checkpointCount: number;
  checkpointSize: string;
  bestTrialId: number | null;
  bestTrialSearcherMetric: number | null;
  duration: number;
  projectId: number;
  projectName: string;
  /** Its scripts run outside of the cluster. */
  unmanaged: boolean;
}

export interface Validation {
  endTime: string;
  totalBatches: number;
  metrics: { avgMetrics: Record<string, Json> };
}

export interface Trial {
  id: number;
  experimentId: number;
  startTime: string;
  endTime: string | null;
  state: string;
  stateReason: string;
  restarts: number;
  hparams: Record<string, Json>;
  totalBatchesProcessed: number;
  bestValidation: Validation | null;
  latestValidation: Validation | null;
  bestCheckpoint: { uuid: string; totalBatches: number; resources: Record<string, string> } | null;
  taskId: string;
  checkpointCount: number;
  totalCheckpointSize: string;
  warmStartCheckpointUuid: string | null;
  searcherMetricValue: number | null;
  wallClockTime: number;
  summaryMetrics: Record<string, Record<string, Summary>>;
}

export interface Summary {
  count: number;
  last: Json;
  min?: number;
  max?: number;
  mean?: number;
  type: string;
}

export interface Checkpoint {
  uuid: string;
  state: string;
  reportTime: string;
  resources: Record<string, string>;
  metadata: Record<string, Json>;
  training: { trialId: number; experimentId: number; searcherMetric: number | null } | null;
}

export interface Slot {
  id: string;
  enabled: boolean;
  draining: boolean;
  device: { type: string; brand: string };
  container: { id: string } | null;
}

export interface Agent {
  id: string;
  registeredTime: string;
  slots: Record<string, Slot>;
  resourcePools: string[];
  addresses: string[];
  enabled: boolean;
  draining: boolean;
  version: string;
}

export interface Job {
  isPreemptible: boolean;
  jobId: string;
  entityId: string;
  type: string;
  name: string;
  username: string;
  resourcePool: string;
  priority: number;
  weight: number;
  requestedSlots: number;
  allocatedSlots: number;
  submissionTime: string;
  summary: { state: string; jobsAhead: number };
  waitsFor: string;
}

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

export interface Pagination {
  startIndex: number;
  total: number;
  offset: number;
  limit: number;
}

export interface User {
  id: number;
  username: string;
  displayName: string;
  admin: boolean;
  active: boolean;
}
