import { expect, test } from "vitest";

import type { Agent } from "../../api/types";
import { holders } from "./facts";

const slot = (id: string, container: string | null) => ({
  id,
  enabled: true,
  draining: false,
  device: { type: "", brand: "" },
  container: container ? { id: container } : null,
});
const agent = (...containers: (string | null)[]) =>
  ({ id: "a", slots: Object.fromEntries(containers.map((one, at) => [String(at), slot(String(at), one)])) }) as unknown as Agent;
const tasks = {
  allocationIdToSummary: {
    x: { name: "sweep", taskId: "7.1", resources: [{ containerId: "c1" }, { containerId: "c2" }] },
    y: { name: "sweep", taskId: "7.2", resources: [{ containerId: "c3" }] },
    z: { name: "notebook", taskId: "nb", resources: [{ containerId: "c4" }] },
  },
};

test("trials of one experiment are one holder, and the largest comes first", () => {
  const one = agent("c4", "c1", "c2", "c3", null);
  const { list, of } = holders([one], tasks);
  expect(list.map(({ id, slots, experiment }) => [id, slots, experiment])).toEqual([
    ["7", 3, 7],
    ["nb", 1, null],
  ]);
  expect(of(one.slots["3"]!)?.id).toBe("7");
  expect(of(one.slots["4"]!)).toBeNull();
});
