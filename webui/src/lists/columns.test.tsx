import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import type { Experiment } from "../api/types";
import { digits } from "../parts/format";
import { BEST, column, defaultIn } from "./columns";

const cell = (id: string, of: Partial<Experiment>, values?: Record<string, number>) =>
  renderToStaticMarkup(column(id).cell({ experiment: { labels: [], ...of } as Experiment, values }) as never).replace(/<[^>]*>/g, "");

test.each([
  [125, 130, "2 min 5 s", ""],
  [125, 725, "2 min 5 s", "12 min 5 s since it was submitted, 10 min of it queued or paused"],
  [0, 600, "–", "10 min since it was submitted, 10 min of it queued or paused"],
])("that ran %s s of %s s ran %s", (runningTime, lasted, words, title) => {
  expect(cell("runningTime", { runningTime, duration: lasted })).toBe(words);
  const shown = renderToStaticMarkup(column("runningTime").cell({ experiment: { runningTime, duration: lasted } as Experiment }) as never);
  expect(/title="([^"]*)"/.exec(shown)?.[1] ?? "").toBe(title);
});

test("what failed at once ran nevertheless", () => {
  expect(cell("runningTime", { runningTime: 0, slotHours: 0.0001, duration: 0 })).toBe("under 1 s");
});

const DIGIT_PX = 8.2;
const BESIDE_PX = 20;
test.each(["searcherMetricsVal", "hp.lr"])("a number of four digits is never cut in %s", (id) => {
  const least = column(id).least ?? column(id).width!;
  expect(least - BESIDE_PX).toBeGreaterThanOrEqual(digits(-0.003461).length * DIGIT_PX - 2 * (DIGIT_PX / 2));
});

test("what its pool can never hold cannot start, and only while it waits", () => {
  expect(cell("state", { state: "STATE_QUEUED", canStart: false })).toBe("CANNOT START");
  expect(cell("state", { state: "STATE_QUEUED", canStart: true })).toBe("QUEUED");
  expect(cell("state", { state: "STATE_PAUSED", canStart: false })).toBe("PAUSED");
});

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

test("the best value names its metric, and a search that is over claims no share", () => {
  expect(cell("searcherMetricsVal", { bestTrialSearcherMetric: 0.25, searcherMetric: "val_loss" })).toBe("val_loss 0.2500");
  expect(cell("searcherMetricsVal", { bestTrialSearcherMetric: null, searcherMetric: "val_loss" })).toBe("–");
  expect(cell("progress", { state: "STATE_COMPLETED", progress: null })).toBe("done");
  expect(cell("progress", { state: "STATE_CANCELED", progress: null })).toBe("–");
});

test.each(["small", "usual", "wide"] as const)("a %s screen has what is compared before what is only told", (screen) => {
  const at = (id: string) => defaultIn(screen).indexOf(id);
  expect(at(BEST)).toBeLessThan(Math.min(...["tags", "numTrials", "course", "runningTime"].map(at)));
});
