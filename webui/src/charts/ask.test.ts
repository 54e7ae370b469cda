import { expect, test } from "vitest";

import { asks } from "./ask";
import type { Known } from "./looks";

const trials: Known[] = [
  { id: 12, experimentId: 1, state: "STATE_ERROR", hparams: { lr: 1e-4, act: "relu", "opt.name": "lion" }, value: 0.5, tags: ["a"] },
  { id: 13, experimentId: 1, state: "STOPPED", hparams: { lr: 1e-2, act: "tanh" }, value: null, tags: [] },
];
const matching = (text: string) => trials.filter(asks(text)).map((trial) => trial.id);

test.each([
  ["", [12, 13]],
  ["13", [13]],
  ["1", [12, 13]],
  ["hp.lr<1e-3", [12]],
  ["hp.lr>=1e-2", [13]],
  ["hp.act:relu", [12]],
  ["hp.act!=relu", [13]],
  ["hp.act~AN", [13]],
  ["hp.opt.name=lion", [12]],
  ["state:error", [12]],
  ["metric<1", [12]],
  ["tag:a", [12]],
  ["tanh", [13]],
  ["hp.lr<1e-3 state:STOPPED", []],
  ["hp.none>0", []],
])("%s finds %j", (text, ids) => expect(matching(text)).toEqual(ids));
