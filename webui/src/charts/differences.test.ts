import { expect, test } from "vitest";

import type { Experiment, Trial } from "../api/types";
import { differences } from "./differences";

const experiment = (id: number, config: object) => ({ id, name: "same", description: "", config }) as unknown as Experiment;
const trial = (id: number, experimentId: number, hparams: object, loss?: number) =>
  ({
    id,
    experimentId,
    hparams,
    totalBatchesProcessed: 8,
    restarts: 0,
    bestValidation: loss === undefined ? null : { metrics: { avgMetrics: { loss } } },
  }) as unknown as Trial;

test("rows that differ are marked, also if only some trials have a value", () => {
  const rows = differences(
    [experiment(1, { searcher: { name: "grid" }, entrypoint: "x" }), experiment(2, { searcher: { name: "random" }, entrypoint: "x" })],
    [trial(5, 1, { lr: 1 }, 0.5), trial(6, 2, { lr: 1, net: { width: 3 } })],
  );
  const differing = rows.filter((row) => row.differs);
  expect(differing.map((row) => row.name)).toEqual(["best loss", "net.width", "config searcher.name"]);
  expect(differing.map((row) => row.values)).toEqual([
    [0.5, undefined],
    [undefined, 3],
    ["grid", "random"],
  ]);
  expect(rows.map((row) => row.name)).toContain("config entrypoint");
});
