import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import type { Experiment } from "../api/types";
import { column } from "./columns";

const cell = (id: string, of: Partial<Experiment>, values?: Record<string, number>) =>
  renderToStaticMarkup(column(id).cell({ experiment: { labels: [], duration: 125, ...of } as Experiment, values }) as never).replace(
    /<[^>]*>/g,
    "",
  );

test.each([
  ["RUNNING", "2 min 5 s"],
  ["COMPLETED", "2 min 5 s"],
  ["QUEUED", "–"],
  ["PAUSED", "paused"],
])("an experiment that is %s ran %s", (state, words) => expect(cell("duration", { state: `STATE_${state}` })).toBe(words));

test.each([
  [["cv", "vit"], "cvvit"],
  [["digits", "sweep"], "digits+1"],
  // The number of further tags needs room, too.
  [["paper", "sweep", "vit"], "paper+2"],
  [["a", "b", "c"], "ab+1"],
  [[], ""],
])("of the tags %s as many are shown as fit", (labels, words) => expect(cell("tags", { labels })).toBe(words));

test("hyperparameters have four digits, as in the table of trials", () => {
  expect(cell("hp.lr", {}, { "hp.lr": 0.00027919171918 })).toBe("0.0002792");
  expect(cell("hp.width", {}, { "hp.width": 12345 })).toBe("12,345");
});
