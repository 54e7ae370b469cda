import { expect, test } from "vitest";

import { ageOf, readUpTo } from "./age";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const reason = (condition: string, second: number, program = "gateway") => ({
  condition,
  about: "",
  program,
  message: "It reads 40 events behind",
  since: at(second).toISOString(),
  action: "Wait.",
});

test("a lagging read side is reported with the time of its data", () => {
  const age = ageOf(null, null, [reason("log_lags", 9), reason("database_fails", 4), reason("disk_low", 1)]);
  expect(age).toEqual({ kind: "stale", since: at(4), why: "It reads 40 events behind. Wait." });
});

test("problems elsewhere do not make the data old", () => {
  expect(ageOf(null, null, [reason("log_lags", 9, "searcher"), reason("nobody_leads", 1)]).kind).toBe("live");
});

test("a broken stream and a silent gateway take precedence", () => {
  expect(ageOf(null, at(3), [reason("log_lags", 1)])).toMatchObject({ kind: "lost", since: at(3) });
  expect(ageOf(at(2), at(3), [])).toMatchObject({ kind: "lost", since: at(2) });
});

test("events that wait for two seconds make the data old, before any condition says so", () => {
  expect(readUpTo(at(9), 1.9)).toBeNull();
  expect(readUpTo(null, 9)).toBeNull();
  expect(readUpTo(at(9), 3)).toEqual(at(6));
  expect(ageOf(null, null, [], at(6))).toMatchObject({ kind: "stale", since: at(6) });
  // A condition begins only after some seconds, and says more.
  expect(ageOf(null, null, [reason("log_lags", 9)], at(6))).toMatchObject({ since: at(6), why: "It reads 40 events behind. Wait." });
});

test("a gateway that stands still at an event, or folds the log anew, shows old data", () => {
  expect(ageOf(null, null, [reason("event_fails", 9)])).toMatchObject({ kind: "stale", since: at(9) });
  expect(ageOf(null, null, [reason("rebuilding", 9)])).toMatchObject({ kind: "stale", since: at(9) });
});
