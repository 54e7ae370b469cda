import { expect, test } from "vitest";

import { conditions, type Known, problem, suggestions, without } from "./suggest";

const vocabulary: Known = {
  columns: ["id", "name", "state", "user", "hp.lr", "validation.loss.last"],
  tags: ["sweep", "two words"],
  users: ["ann"],
  projects: [],
};
const labels = (text: string) => suggestions(text, vocabulary).map((suggestion) => suggestion.label);

test("column names come first if they start with the word", () => {
  expect(labels("st")[0]).toBe("started:");
  expect(labels("st")).toContain("state:");
  expect(labels("tag:sweep h")).toContain("hp.lr:");
});

test("values are those of the column, quoted if needed, and the rest of the query stays", () => {
  expect(suggestions("user:ann tag:t", vocabulary)).toEqual([{ label: 'tag:"two words"', text: 'user:ann tag:"two words" ' }]);
  expect(labels("state:RUN")).toEqual(["state:RUNNING"]);
  expect(labels("(user:")).toEqual(["user:ann"]);
});

test("an unknown word is reported with the nearest known one", () => {
  expect(problem("state:RUNING", vocabulary)).toBe("there is no state RUNING. Did you mean RUNNING?");
  expect(problem("colour:red", vocabulary)).toContain("there is no column 'colour'");
  expect(problem("(tag:sweep", vocabulary)).toContain("a parenthesis is not closed");
  expect(problem("state:ACTIVE hp.new<3 metric.loss>1 -tag:x started>2026-01-01", vocabulary)).toBe("");
});

test("conditions are listed one by one, and each can be removed", () => {
  expect(conditions("state:ACTIVE (tag:a OR tag:b)")).toEqual(["state:ACTIVE", "tag:a OR tag:b"]);
  expect(without("state:ACTIVE (tag:a OR tag:b)", 0)).toBe("(tag:a OR tag:b)");
  expect(conditions("tag:a OR tag:b")).toEqual(["tag:a OR tag:b"]);
  expect(without("tag:a OR tag:b", 0)).toBe("");
});
