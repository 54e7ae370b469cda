import { expect, test } from "vitest";

import { exactFirst } from "./exact_first";

const group = (name: string, ...names: string[]) => ({ name, items: names.map((name) => ({ name })) });
const names = (groups: ReturnType<typeof group>[]) => groups.map((group) => [group.name, ...group.items.map((item) => item.name)]);

test("the page whose whole name is typed stands before experiments that contain it", () => {
  const groups = [group("Experiments", "queue-test", "my queue"), group("Agents", "a"), group("Go to", "Job Queue", "Queue")];
  expect(names(exactFirst(groups, "queue"))).toEqual([
    ["Go to", "Queue", "Job Queue"],
    ["Experiments", "queue-test", "my queue"],
    ["Agents", "a"],
  ]);
});

test("otherwise the order stays, and an experiment goes before a page of the same name", () => {
  const groups = [group("Experiments", "queue"), group("Go to", "Queue")];
  expect(names(exactFirst(groups, "Queue"))).toEqual([
    ["Experiments", "queue"],
    ["Go to", "Queue"],
  ]);
  expect(exactFirst(groups, "que")).toEqual(groups);
});
