import { expect, test } from "vitest";

import { readChosen } from "./colours";
import { type Known, kindsOf, looksOf, shareOn, scaleOf } from "./looks";

const trial = (id: number, more: Partial<Known> = {}): Known => ({
  id,
  experimentId: 1,
  state: "COMPLETED",
  hparams: {},
  value: id,
  tags: [],
  ...more,
});
const chosen = readChosen("2.3")!;
const colours = (trials: Known[], by: string, more = {}) =>
  [...looksOf(trials, { by, chosen, smaller: false, ...more }).values()].map((look) => look.colour);

test("chosen trials have slots, all others are grey and behind", () => {
  const looks = looksOf([trial(1), trial(2)], { by: "", chosen, smaller: true });
  expect(looks.get(2)).toMatchObject({ colour: "--s3", front: true });
  expect(looks.get(1)).toMatchObject({ colour: "--s-rest", front: false });
});

test("coloured by the metric, the best trial has the good end of the scale, whichever way is better", () => {
  const trials = [trial(1), trial(2), trial(3), trial(4, { value: null })];
  expect(colours(trials, "metric")).toEqual(["share:0.000", "share:0.500", "share:1.000", "--s-rest"]);
  expect(colours(trials, "metric", { smaller: true })[0]).toBe("share:1.000");
});

test("numbers use the scale that the configuration gives them, words have distinct colours", () => {
  const trials = [1e-4, 1e-3, 1e-2, 1e-1].map((lr, at) => trial(at, { hparams: { lr, act: at % 2 ? "relu" : "tanh" } }));
  expect(colours(trials, "hp.lr", { scale: "log" })).toEqual(["share:0.000", "share:0.333", "share:0.667", "share:1.000"]);
  expect(colours(trials, "hp.act")).toEqual(["--s2", "--s1", "--s2", "--s1"]);
  expect(kindsOf(looksOf(trials, { by: "hp.act", chosen, smaller: false })).map(({ why, count }) => [why, count])).toEqual([
    ["relu", 2],
    ["tanh", 2],
  ]);
});

test("a state has its own colour, and kinds beyond the number of colours stay grey", () => {
  expect(colours([trial(1, { state: "ERROR" })], "state")).toEqual(["--error"]);
  const many = Array.from({ length: 14 }, (_, at) => trial(at, { experimentId: at }));
  expect(colours(many, "experiment").slice(11)).toEqual(["--s12", "--s-rest", "--s-rest"]);
});

test("a single value is the whole scale", () => expect(shareOn(scaleOf([3]), 3)).toBe(1));
