/** Agents, their slots and what is on them, as the pages of the cluster take them. */

import { useMemo } from "react";

import { useData } from "../../api/data";
import type { Agent, Slot } from "../../api/types";

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

/** What holds slots: an experiment, or a task of another kind. */
export interface Holder {
  id: string;
  name: string;
  experiment: number | null;
  slots: number;
  colour: string;
}

/** Of a task of a trial; a task of another kind has none. */
const experimentOf = (taskId: string) => (/^\d+\./.test(taskId) ? Number(taskId.split(".")[0]) : null);
const COLOURS = 12;
const REST_MS = 5000;

/** Who holds each slot; colours go by the number of slots, so that the largest keep theirs. */
export function holders(agents: Agent[], tasks: Tasks | undefined): { list: Holder[]; of: (slot: Slot) => Holder | null } {
  const byContainer = new Map(
    Object.values(tasks?.allocationIdToSummary ?? {}).flatMap((one) => one.resources.map((part) => [part.containerId, one] as const)),
  );
  const found = new Map<string, Holder>();
  const keys = new Map<string, string>();
  for (const slot of agents.flatMap((agent) => Object.values(agent.slots))) {
    const user = slot.container && byContainer.get(slot.container.id);
    if (!slot.container || !user) continue;
    const experiment = experimentOf(user.taskId);
    const id = experiment === null ? user.taskId : String(experiment);
    keys.set(slot.container.id, id);
    const there = found.get(id);
    if (there) there.slots += 1;
    else found.set(id, { id, name: user.name, experiment, slots: 1, colour: "" });
  }
  const list = [...found.values()].toSorted((a, b) => b.slots - a.slots || a.id.localeCompare(b.id));
  list.forEach((one, at) => {
    one.colour = `var(--s${(at % COLOURS) + 1})`;
  });
  return { list, of: (slot) => (slot.container ? (found.get(keys.get(slot.container.id) ?? "") ?? null) : null) };
}

export function useCluster() {
  const agents = useData<{ agents: Agent[] }>("agents", ["cluster"]);
  const tasks = useData<Tasks>("tasks", ["cluster"]);
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["cluster", "queue"]);
  const away = useData<{ agents: Away[] }>("cluster/away", ["cluster"]);
  const held = useMemo(() => holders(agents.data?.agents ?? [], tasks.data), [agents.data, tasks.data]);
  return { agents, pools: pools.data?.resourcePools ?? [], away: away.data?.agents ?? [], held };
}

/** The last day of each slot. */
export function usePast() {
  const strips = useData<{ slots: { agentId: string; slotId: string; runs: Run[] }[] }>("cluster/slots", ["cluster"], true, REST_MS);
  return useMemo(() => new Map(strips.data?.slots.map((one) => [`${one.agentId} ${one.slotId}`, one.runs])), [strips.data]);
}
