import { expect, test } from "vitest";

import { field, format, parse, QueryError } from "./query";

test("a query parses to a tree", () => {
  expect(parse("state:ACTIVE hp.lr<1e-3 metric.val_loss<0.2 tag:sweep").children).toEqual([
    field("state", "=", "ACTIVE"),
    field("hp.lr", "<", "1e-3"),
    field("metric.val_loss", "<", "0.2"),
    field("tags", "contains", "sweep"),
  ]);
});

test("words, quotes, negation, nothing and something", () => {
  expect(parse('resnet -user:admin name:"two words" tag:none best:some').children).toEqual([
    field("name", "contains", "resnet"),
    field("user", "!=", "admin"),
    field("name", "contains", "two words"),
    field("tags", "isEmpty", ""),
    field("searcherMetricsVal", "notEmpty", ""),
  ]);
});

test.each([
  "",
  "state:ACTIVE hp.lr<1e-3 metric.val_loss<0.2 tag:sweep",
  "tag:a OR tag:b",
  "state:ERROR (tag:a OR tag:b) trials>=3",
  "(tag:a state:ERROR) OR id:7",
  'name:"a \\"b\\" (c)" "hp.my rate">1',
  "user~ann -searcher~asha",
  "-tag:debug user!=admin started>2026-11-20",
])("the query survives parsing and formatting: %s", (text) => {
  expect(format(parse(text))).toBe(text);
  expect(parse(format(parse(text)))).toEqual(parse(text));
});

test.each(["(tag:a", "tag:a)", '"', 'name:"x'])("an unreadable query is reported: %s", (text) => {
  expect(() => parse(text)).toThrow(QueryError);
});

test.each(["state:", "tag:a hp.lr<", "started>=", "user~"])("a condition that is still being typed is no search for names: %s", (text) => {
  expect(() => parse(text)).toThrow(/needs a value$/);
  expect(parse('"state:"').children).toEqual([field("name", "contains", "state:")]);
});
