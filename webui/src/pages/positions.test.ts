import { expect, test } from "vitest";

import type { ServicesProgress } from "../api/types";
import { readings } from "./positions";

const stream = (name: string, lateSeconds = 0) => ({ stream: name, position: 9, behind: 0, lateSeconds });
const process = (program: string, streams: ReturnType<typeof stream>[], savedLate = 0) => ({
  program,
  replica: "ab12",
  leads: true,
  streams,
  saved: { position: 9, behind: 0, lateSeconds: savedLate },
});
const named = (progress: ServicesProgress) => readings(progress).map((reading) => [reading.program, reading.stream?.stream]);

test("a row for each stream of each process, and for a process that reads none", () => {
  const processes = [process("metrics", [stream("CONTROL"), stream("REPORTS")]), process("archive", [])];
  expect(named({ processes, silent: [] })).toEqual([
    ["metrics", "CONTROL"],
    ["metrics", "REPORTS"],
    ["archive", undefined],
  ]);
});

test("what does not answer comes first, then what is furthest behind, in reading or in saving", () => {
  const processes = [
    process("gateway", [stream("CONTROL")]),
    process("metrics", [stream("CONTROL"), stream("REPORTS", 3)]),
    process("searcher", [stream("CONTROL")], 8),
  ];
  expect(named({ processes, silent: ["scheduler"] })).toEqual([
    ["scheduler", undefined],
    ["searcher", "CONTROL"],
    ["metrics", "REPORTS"],
    ["gateway", "CONTROL"],
    ["metrics", "CONTROL"],
  ]);
});
