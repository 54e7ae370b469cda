import { expect, test } from "vitest";

import { chartsOf, finding, isOpen, pinnedFirst, sectionsOf } from "./sections";

const names = (...given: string[]) =>
  given.map((each) => {
    const [group, name] = each.split(":");
    return name ? { group: group!, name } : { group: "training", name: group! };
  });
const titles = (given: ReturnType<typeof names>, searched = "") =>
  sectionsOf(chartsOf(given), searched).map((name) => [name.title, name.charts.map((each) => each.name)]);

test("metrics with a common prefix before a slash or dot form a section, machine metrics last", () => {
  expect(titles(names("profile.gpu:gpu0", "loss", "layer/1", "layer/2", "layer/10", "opt.lr", "opt.wd", "alone/x"))).toEqual([
    ["", ["alone/x", "loss"]],
    ["layer", ["layer/1", "layer/2", "layer/10"]],
    ["opt", ["opt.lr", "opt.wd"]],
    ["system", ["gpu0"]],
  ]);
});

test("the searcher's metric comes first, then metrics in both training and validation; axes are not charts", () => {
  const given = names("a", "zloss", "validation:zloss", "epoch", "batches", "validation:acc");
  expect(titles(given, "acc")).toEqual([["", ["acc", "zloss", "a"]]]);
});

test("pinned charts come first, in their order, and leave their sections", () => {
  const sections = pinnedFirst(sectionsOf(chartsOf(names("a", "b", "x/1", "x/2")), ""), ["x/2", "gone", "a"]);
  expect(sections.map((name) => [name.title, name.charts.map((each) => each.name)])).toEqual([
    ["Pinned", ["x/2", "a"]],
    ["", ["b"]],
    ["x", ["x/1"]],
  ]);
});

test("numbered layers form one section", () => {
  expect(titles(names("layer_00/norm", "layer_01/norm", "v2.x"))).toEqual([
    ["", ["v2.x"]],
    ["layer", ["layer_00/norm", "layer_01/norm"]],
  ]);
});

test("every word of the search must match", () => {
  const charts = chartsOf(names("layer.1/grad_norm", "layer.2/norm", "loss"));
  expect(finding(charts, "Layer NORM").map((name) => name.name)).toEqual(["layer.1/grad_norm", "layer.2/norm"]);
  expect(finding(charts, " ")).toHaveLength(3);
});

test("sections after the third are folded, unless the user opened them or searches", () => {
  expect([isOpen(2, undefined, false), isOpen(3, undefined, false), isOpen(3, undefined, true)]).toEqual([true, false, true]);
  expect([isOpen(0, false, true), isOpen(9, true, false)]).toEqual([false, true]);
});
