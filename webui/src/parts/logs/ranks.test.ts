import { expect, test } from "vitest";

import { failedRanks, ranksOf } from "./ranks";

const rank = (rankId: number | null, failedTimestamp: string | null = null) => ({ rankId, failedTimestamp });

test("what the launcher wrote is no rank, and a rank that was stopped did not fail", () => {
  const ranks = [rank(null), rank(0), rank(1, "2026-11-27T02:33:10Z")];
  expect(ranksOf(ranks).length).toBe(2);
  expect(failedRanks(ranks)).toBe(1);
  expect(failedRanks([rank(null, "2026-11-27T02:33:10Z"), rank(0, "2026-11-27T02:33:11Z")])).toBe(1);
});
