import { expect, test } from "vitest";

import { finding } from "./sections";
import { titleOf } from "./titles";

test("machine metrics have plain titles with a unit", () => {
  const title = (name: string) => Object.values(titleOf(name, true)).join(" | ");
  expect(title("memory_gb.vm")).toBe("Memory of vm | GB");
  expect(title("cpu_cores.rank12")).toBe("CPU of rank 12 | cores busy");
  expect(title("gpu_percent.node-1.lab.0")).toBe("Use of GPU 0 of node-1.lab | %");
  expect(title("gpu_memory_gb.vm.3")).toBe("Memory of GPU 3 of vm | GB");
  expect(title("gpu_memory_gb.rank0")).toBe("GPU memory of rank 0 | GB");
  expect(title("cpu_util_simple")).toBe("CPU | % busy");
  // A worker is named after its machine, dots included.
  expect(title("memory_gb.10.0.0.1")).toBe("Memory of 10.0.0.1 | GB");
});

test("names that scripts chose and unknown names stay as they are", () => {
  expect(titleOf("memory_gb.vm", false)).toEqual({ text: "memory_gb.vm", unit: "" });
  expect(titleOf("dataloader_next", true)).toEqual({ text: "dataloader_next", unit: "" });
  expect(titleOf("constructor.x", true)).toEqual({ text: "constructor.x", unit: "" });
});

test("a metric is found by its name and by its title", () => {
  const charts = [{ name: "memory_gb.rank0", groups: ["profile.process"], profile: true }];
  expect(["memory_gb", "Memory rank 0", "loss"].map((words) => finding(charts, words).length)).toEqual([1, 1, 0]);
});
