import { expect, test } from "vitest";

import { commandLine, filtersOf, hits, shown } from "./filters";

const of = (search: string) => filtersOf(new URLSearchParams(search));

test("the address, the request and the command line agree", () => {
  const filters = of("level=ERROR&rank=1&text=it's+2%25&re=1");
  expect(shown(filters)).toMatchObject({ levels: ["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"], rankIds: "1", regex: "it's 2%" });
  expect(commandLine("det trial logs 7", filters, "trial-7.log")).toBe(
    `det trial logs 7 --level ERROR --rank-id 1 --regex 'it'\\''s 2%' > trial-7.log`,
  );
});

test("in context, all lines are shown and hits are searched among them", () => {
  const filters = of("text=nan&all=1&rank=0");
  expect(shown(filters)).not.toHaveProperty("searchText");
  expect(hits(filters)).toMatchObject({ searchText: "nan", rankIds: "0" });
  expect(commandLine("det trial logs 7", filters)).toBe("det trial logs 7 --rank-id 0");
});
