import { expect, test } from "vitest";

import { conditions, type Known, problem, suggestions, without } from "./suggest";

const known: Known = {
  columns: ["id", "name", "state", "user", "hp.lr", "validation.loss.last"],
  tags: ["sweep", "two words"],
  users: ["ann"],
  projects: [],
};
const said = (text: string) => suggestions(text, known).map((one) => one.said);

test("column names come first if they start with the word", () => {
  expect(said("st")[0]).toBe("started:");
  expect(said("st")).toContain("state:");
  expect(said("tag:sweep h")).toContain("hp.lr:");
});

test("values are those of the column, quoted if needed, and the rest of the query stays", () => {
  expect(suggestions("user:ann tag:t", known)).toEqual([{ said: 'tag:"two words"', text: 'user:ann tag:"two words" ' }]);
  expect(said("state:RUN")).toEqual(["state:RUNNING"]);
  expect(said("(user:")).toEqual(["user:ann"]);
});

test("an unknown word is reported with the nearest known one", () => {
  expect(problem("state:RUNING", known)).toBe("there is no state RUNING. Did you mean RUNNING?");
  expect(problem("colour:red", known)).toContain("there is no column 'colour'");
  expect(problem("(tag:sweep", known)).toContain("a parenthesis is not closed");
  expect(problem("state:ACTIVE hp.new<3 metric.loss>1 -tag:x started>2026-01-01", known)).toBe("");
});

test("conditions are listed one by one, and each can be removed", () => {
  expect(conditions("state:ACTIVE (tag:a OR tag:b)")).toEqual(["state:ACTIVE", "tag:a OR tag:b"]);
  expect(without("state:ACTIVE (tag:a OR tag:b)", 0)).toBe("(tag:a OR tag:b)");
  expect(conditions("tag:a OR tag:b")).toEqual(["tag:a OR tag:b"]);
  expect(without("tag:a OR tag:b", 0)).toBe("");
});
