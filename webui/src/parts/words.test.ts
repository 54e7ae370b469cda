import { expect, test } from "vitest";

import { actorName, because, duration, exact, many, measured, moment, sentence, unended, unnamed } from "./format";

test.each([
  [0, "0 s"],
  [0.198, "under 1 s"],
  [0.7, "1 s"],
  [3605, "1 h"],
])("%d s are called %s", (seconds, words) => expect(duration(seconds)).toBe(words));

test.each([
  [0.25, "0.2500"],
  ["NaN", "NaN"],
  ["-Infinity", "-Infinity"],
  [null, ""],
  [undefined, ""],
])("%s is shown as %s where something was measured", (value, text) => expect(measured(value)).toBe(text));

test.each([
  ["user:ada", "ada"],
  ["user:a:b", "a:b"],
  ["worker:vm", "agent vm"],
  ["trial:13", "trial 13"],
  ["searcher", "searcher"],
])("the actor %s is called %s", (actor, name) => expect(actorName(actor)).toBe(name));

test("a sentence from a service begins with a capital letter", () => {
  expect(sentence("trial 1 ended in error")).toBe("Trial 1 ended in error");
  expect(sentence("")).toBe("");
});

test.each([
  ["STATE_PAUSED", "only paused"],
  ["QUEUED", "still waiting"],
  ["STATE_RUNNING", "still running"],
  ["STOPPING_CANCELED", "still running"],
])("what is %s is %s", (state, words) => expect(unended(state)).toBe(words));

test("a moment on another day has a date", () => {
  const noon = new Date(2026, 10, 23, 12, 0, 5);
  expect(moment(noon.toISOString(), noon.getTime())).toBe("12:00:05");
  expect(moment(noon.toISOString(), noon.getTime() + 86_400_000)).toBe("23 Nov, 12:00");
});

test("an exact time says what the browser's own words for dates say", () => {
  const words = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  const days = Array.from({ length: 24 }, (_, at) => new Date(2026, at % 12, 1 + at, at, (at * 7) % 60, at * 2));
  expect(days.map((day) => exact(day.toISOString()))).toEqual(days.map((day) => words.format(day)));
});

test("one of a thing is not many", () => {
  expect([0, 1, 2, 12345].map((value) => many(value, "line"))).toEqual(["0 lines", "1 line", "2 lines", "12,345 lines"]);
});

test("who did it is not named again in what they did", () => {
  expect(unnamed("user ann logged in from here", "ann")).toBe("logged in from here");
  expect(unnamed("user anna logged in from here", "ann")).toBe("user anna logged in from here");
  expect(unnamed("experiment 7 was paused", "ann")).toBe("experiment 7 was paused");
  expect(unnamed("user  logged in", "")).toBe("user  logged in");
  expect(because("ann logged in", "ann")).toBe("");
  expect(because("paused by ann", "ann")).toBe("paused by ann");
});
