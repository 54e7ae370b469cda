import { expect, test } from "vitest";

import type { Agent } from "../../api/types";
import { heatOf, holders, loadOf, type Use } from "./facts";

const slot = (id: string, container: string | null) => ({
  id,
  enabled: true,
  draining: false,
  device: { type: "", brand: "" },
  container: container ? { id: container } : null,
});
const agent = (...containers: (string | null)[]) =>
  ({
    id: "a",
    slots: Object.fromEntries(containers.map((container, at) => [String(at), slot(String(at), container)])),
  }) as unknown as Agent;
const tasks = {
  allocationIdToSummary: {
    x: { name: "sweep", taskId: "7.1", resources: [{ containerId: "c1" }, { containerId: "c2" }] },
    y: { name: "sweep", taskId: "7.2", resources: [{ containerId: "c3" }] },
    z: { name: "notebook", taskId: "nb", resources: [{ containerId: "c4" }] },
  },
};

test("the trials of one experiment are one holder, and the largest comes first", () => {
  const busy = agent("c4", "c1", "c2", "c3", null);
  const { list, of } = holders([busy], tasks);
  expect(list.map(({ id, slots, experiment }) => [id, slots, experiment])).toEqual([
    ["7", 3, 7],
    ["nb", 1, null],
  ]);
  expect(of(busy.slots["3"]!)?.id).toBe("7");
  expect(of(busy.slots["4"]!)).toBeNull();
});

test("holders are named as in the queue", () => {
  const names = new Map([
    ["7", "vit sweep"],
    ["nb", "Notebook of ann"],
  ]);
  const { list } = holders([agent("c1", "c4")], tasks, names);
  expect(list.map((holder) => holder.name)).toEqual(["vit sweep", "Notebook of ann"]);
});

test("an agent's load covers all its runs, and is unknown if nothing was sampled", () => {
  const uses: Use[] = [
    {
      taskId: "7.1",
      experimentId: 7,
      trialId: 1,
      name: "sweep",
      gpus: [
        { agentId: "a", slotId: "0", percent: 90, memoryGb: 10 },
        { agentId: "a", slotId: "1", percent: 50 },
      ],
      processes: [
        { name: "rank0", agentId: "a", cpuCores: 1, memoryGb: 2 },
        { name: "rank1", agentId: null, cpuCores: 8 },
      ],
    },
  ];
  expect(loadOf(uses, "a")).toEqual({ cpuCores: 1, memoryGb: 2, gpu: 70, gpuMemoryGb: 10 });
  expect(loadOf(uses, "b")).toEqual({ cpuCores: null, memoryGb: null, gpu: null, gpuMemoryGb: null });
  expect(heatOf(uses, "a", "0")).toBe(0.9);
  expect(heatOf(uses, "a", "2")).toBeNull();
});
