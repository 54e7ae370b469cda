/** Agents, their slots and what runs on them, for the pages of the cluster. */

import { useEffect, useMemo } from "react";

import { useData } from "../../api/data";
import type { Agent, Job, Slot } from "../../api/types";

export const slotsOf = (agent: Agent) => Object.values(agent.slots);
export const isBusy = (slot: Slot) => slot.container !== null;

export interface Pool {
  name: string;
  description: string;
  numAgents: number;
  slotsAvailable: number;
  slotsUsed: number;
  slotsPerAgent: number;
  schedulerType: string;
  schedulerFittingPolicy: string;
  stats: { queuedCount: number; scheduledCount: number };
}
export interface Run {
  name: string;
  experimentId: number | null;
  trialId: number | null;
  since: string;
  until: string | null;
  outcome: string;
  reason: string;
}
export interface Away {
  id: string;
  resourcePools: string[];
  slots: number;
  goneTime: string;
  reason: string;
  runs: Run[];
}
interface Tasks {
  allocationIdToSummary: Record<string, { name: string; taskId: string; resources: { containerId: string }[] }>;
}

/** What holds slots: an experiment, or another kind of task. */
export interface Holder {
  id: string;
  name: string;
  experiment: number | null;
  slots: number;
  colour: string;
}

/** What a run used on its hosts when it was last sampled. */
export interface Use {
  taskId: string;
  experimentId: number;
  trialId: number | null;
  name: string;
  gpus: { agentId: string; slotId: string; percent?: number; memoryGb?: number }[];
  processes: { name: string; agentId: string | null; cpuCores?: number; memoryGb?: number; gpuMemoryGb?: number }[];
}

/** What all runs on an agent use together; null if nothing was sampled. */
export interface Load {
  cpuCores: number | null;
  memoryGb: number | null;
  /** Mean over the GPUs in use, in percent. */
  gpu: number | null;
  gpuMemoryGb: number | null;
}

const total = (values: (number | undefined)[]) => {
  const defined = values.filter((value): value is number => value !== undefined);
  return defined.length ? defined.reduce((sum, value) => sum + value, 0) : null;
};

export function loadOf(uses: Use[], agent: string): Load {
  const processes = uses.flatMap((use) => use.processes).filter((process) => process.agentId === agent);
  const gpus = uses.flatMap((gpu) => gpu.gpus).filter((gpu) => gpu.agentId === agent);
  const busy = gpus.flatMap((gpu) => gpu.percent ?? []);
  return {
    cpuCores: total(processes.map((process) => process.cpuCores)),
    memoryGb: total(processes.map((process) => process.memoryGb)),
    gpu: busy.length ? busy.reduce((sum, share) => sum + share, 0) / busy.length : null,
    gpuMemoryGb: total(gpus.map((gpu) => gpu.memoryGb)),
  };
}

/** Utilization of a slot's GPU, 0 to 1; null if it is not sampled. */
export function heatOf(uses: Use[], agent: string, slot: string): number | null {
  const load = uses.flatMap((gpu) => gpu.gpus).find((gpu) => gpu.agentId === agent && gpu.slotId === slot);
  return load?.percent === undefined ? null : load.percent / 100;
}

/** The experiment of a trial's task; null for other tasks. */
const experimentOf = (taskId: string) => (/^\d+\./.test(taskId) ? Number(taskId.split(".")[0]) : null);
const COLOURS = 12;
const REST_MS = 5000;

/** Which holder has each slot. Colours are assigned by number of slots, so that the largest holders keep theirs. */
export function holders(
  agents: Agent[],
  tasks: Tasks | undefined,
  names: ReadonlyMap<string, string> = new Map(),
): { list: Holder[]; of: (slot: Slot) => Holder | null } {
  const byContainer = new Map(
    Object.values(tasks?.allocationIdToSummary ?? {}).flatMap((allocation) =>
      allocation.resources.map((part) => [part.containerId, allocation] as const),
    ),
  );
  const holders = new Map<string, Holder>();
  const keys = new Map<string, string>();
  for (const slot of agents.flatMap((agent) => Object.values(agent.slots))) {
    const user = slot.container && byContainer.get(slot.container.id);
    if (!slot.container || !user) continue;
    const experiment = experimentOf(user.taskId);
    const id = experiment === null ? user.taskId : String(experiment);
    keys.set(slot.container.id, id);
    const there = holders.get(id);
    if (there) there.slots += 1;
    else holders.set(id, { id, name: names.get(id) ?? user.name, experiment, slots: 1, colour: "" });
  }
  const list = [...holders.values()].toSorted((a, b) => b.slots - a.slots || a.id.localeCompare(b.id, "en", { numeric: true }));
  list.forEach((holder, at) => {
    holder.colour = `var(--s${(at % COLOURS) + 1})`;
  });
  return { list, of: (slot) => (slot.container ? (holders.get(keys.get(slot.container.id) ?? "") ?? null) : null) };
}

const NO_USES: Use[] = [];
/** How often workers sample. No event announces a sample, so the page polls. */
const SAMPLED_MS = 10_000;

function useTick(every: number, go: () => unknown) {
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && void go(), every);
    return () => clearInterval(timer);
  }, [every, go]);
}

export function useCluster() {
  const agents = useData<{ agents: Agent[] }>("agents", ["cluster"]);
  const tasks = useData<Tasks>("tasks", ["cluster"]);
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["cluster", "queue"]);
  const away = useData<{ agents: Away[] }>("cluster/away", ["cluster"]);
  const sampled = useData<{ uses: Use[] }>("cluster/use", ["cluster"], true, REST_MS);
  useTick(SAMPLED_MS, sampled.refetch);
  const uses = sampled.data?.uses ?? NO_USES;
  const queue = useData<{ jobs: Job[] }>("job-queues", ["queue", "experiments"], true, REST_MS);
  const held = useMemo(() => {
    const names = new Map(queue.data?.jobs.map((job) => [job.entityId, job.name]));
    return holders(agents.data?.agents ?? [], tasks.data, names);
  }, [agents.data, tasks.data, queue.data]);
  return { agents, pools: pools.data?.resourcePools ?? [], away: away.data?.agents ?? [], held, uses };
}

/** What ran on each slot during the last day. */
export function usePast() {
  const strips = useData<{ slots: { agentId: string; slotId: string; runs: Run[] }[] }>("cluster/slots", ["cluster"], true, REST_MS);
  return useMemo(() => new Map(strips.data?.slots.map((slot) => [`${slot.agentId} ${slot.slotId}`, slot.runs])), [strips.data]);
}
