/** How far each service has read the log, and how far behind it is. */

import { useQuery } from "@tanstack/react-query";

import { question } from "../api/data";
import type { ProcessProgress, ServicesProgress, StreamProgress } from "../api/types";
import { duration } from "../parts/format";
import { Card } from "../ui/card";
import { Empty, Loaded } from "../ui/status";
import { type Column, Table } from "../ui/table";

const FRESH_MS = 4000;

/** One process and one stream that it reads; without a process, the service did not answer. */
export interface Reading {
  program: string;
  process?: ProcessProgress;
  stream?: StreamProgress;
}

/** A row for each stream of each process; what does not answer comes first, then what is furthest behind. */
export function readings({ processes, silent }: ServicesProgress): Reading[] {
  const answered = processes.flatMap((process): Reading[] =>
    process.streams.length
      ? process.streams.map((stream) => ({ program: process.program, process, stream }))
      : [{ program: process.program, process }],
  );
  const rows = [...silent.map((program): Reading => ({ program })), ...answered];
  const urgency = (one: Reading) => (one.process ? Math.max(one.stream?.lateSeconds ?? 0, savedOf(one)?.lateSeconds ?? 0) : Infinity);
  return rows
    .map((one) => ({ one, urgency: urgency(one) }))
    .toSorted((a, b) => byUrgency(a.urgency, b.urgency))
    .map(({ one }) => one);
}

const byUrgency = (a: number, b: number) => (a === b ? 0 : b > a ? 1 : -1);

/** Databases are saved up to a position of the main stream. */
const savedOf = (one: Reading) => (one.stream?.stream === "CONTROL" ? one.process?.saved : null);

const count = (value: number | undefined) => value?.toLocaleString("en") ?? "";
const late = (seconds: number | undefined) => (seconds === undefined ? "" : seconds < 1 ? "none" : duration(seconds));
const role = ({ process }: Reading) => (process ? (process.leads ? "leads" : "reads along") : "does not answer");

const COLUMNS: Column<Reading>[] = [
  { id: "program", head: "Service", name: true, width: 150, cell: (one) => one.program, value: (one) => one.program },
  {
    id: "role",
    head: "Role",
    width: 130,
    cell: (one) => <span className={one.process ? "ink3" : "bad"}>{role(one)}</span>,
    value: role,
    title: (one) => one.process && `replica ${one.process.replica}`,
  },
  {
    id: "stream",
    head: "Stream",
    width: 110,
    cell: (one) => <span className="m">{one.stream?.stream}</span>,
    value: (one) => one.stream?.stream,
  },
  {
    id: "position",
    head: "Read up to",
    width: 110,
    num: true,
    cell: (one) => count(one.stream?.position),
    value: (one) => one.stream?.position,
    small: true,
  },
  {
    id: "behind",
    head: "Behind",
    width: 100,
    num: true,
    cell: (one) => count(one.stream?.behind),
    value: (one) => one.stream?.behind,
    small: true,
  },
  {
    id: "late",
    head: "Delay",
    width: 100,
    num: true,
    cell: (one) => late(one.stream?.lateSeconds),
    value: (one) => one.stream?.lateSeconds,
  },
  {
    id: "saved",
    head: "Saved up to",
    width: 110,
    num: true,
    cell: (one) => count(savedOf(one)?.position),
    value: (one) => savedOf(one)?.position,
  },
  {
    id: "unsaved",
    head: "Not saved",
    width: 100,
    num: true,
    cell: (one) => count(savedOf(one)?.behind),
    value: (one) => savedOf(one)?.behind,
  },
];

export function Positions() {
  const found = useQuery({ ...question<ServicesProgress>("master/positions"), refetchInterval: FRESH_MS });
  const rows = found.data && readings(found.data);
  return (
    <Card title="Services" more="how far each has read the log, in messages" flush>
      <Loaded found={found}>
        {() => (
          <Table
            name="Services"
            rows={rows ?? []}
            id={(one) => `${one.program} ${one.process?.replica} ${one.stream?.stream}`}
            columns={COLUMNS}
            empty={<Empty title="No service answers">The gateway cannot reach the broker. What is wrong is told above.</Empty>}
          />
        )}
      </Loaded>
    </Card>
  );
}
