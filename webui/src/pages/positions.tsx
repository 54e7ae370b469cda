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
  const urgency = (reading: Reading) =>
    reading.process ? Math.max(reading.stream?.lateSeconds ?? 0, savedOf(reading)?.lateSeconds ?? 0) : Infinity;
  return rows
    .map((row) => ({ row, urgency: urgency(row) }))
    .toSorted((a, b) => byUrgency(a.urgency, b.urgency))
    .map(({ row }) => row);
}

const byUrgency = (a: number, b: number) => (a === b ? 0 : b > a ? 1 : -1);

/** Databases are saved up to a position of the main stream. */
const savedOf = (reading: Reading) => (reading.stream?.stream === "CONTROL" ? reading.process?.saved : null);

const count = (value: number | undefined) => value?.toLocaleString("en") ?? "";
const late = (seconds: number | undefined) => (seconds === undefined ? "" : seconds < 1 ? "none" : duration(seconds));
const role = ({ process }: Reading) => (process ? (process.leads ? "leads" : "reads along") : "does not answer");

const COLUMNS: Column<Reading>[] = [
  { id: "program", head: "Service", name: true, width: 150, cell: (reading) => reading.program, value: (reading) => reading.program },
  {
    id: "role",
    head: "Role",
    width: 130,
    cell: (reading) => <span className={reading.process ? "ink3" : "bad"}>{role(reading)}</span>,
    value: role,
    title: (reading) => reading.process && `replica ${reading.process.replica}`,
  },
  {
    id: "stream",
    head: "Stream",
    width: 110,
    cell: (reading) => <span className="m">{reading.stream?.stream}</span>,
    value: (reading) => reading.stream?.stream,
  },
  {
    id: "position",
    head: "Read up to",
    width: 110,
    num: true,
    cell: (reading) => count(reading.stream?.position),
    value: (reading) => reading.stream?.position,
    small: true,
  },
  {
    id: "behind",
    head: "Behind",
    width: 100,
    num: true,
    cell: (reading) => count(reading.stream?.behind),
    value: (reading) => reading.stream?.behind,
    small: true,
  },
  {
    id: "late",
    head: "Delay",
    width: 100,
    num: true,
    cell: (reading) => late(reading.stream?.lateSeconds),
    value: (reading) => reading.stream?.lateSeconds,
  },
  {
    id: "saved",
    head: "Saved up to",
    width: 110,
    num: true,
    cell: (reading) => count(savedOf(reading)?.position),
    value: (reading) => savedOf(reading)?.position,
  },
  {
    id: "unsaved",
    head: "Not saved",
    width: 100,
    num: true,
    cell: (reading) => count(savedOf(reading)?.behind),
    value: (reading) => savedOf(reading)?.behind,
  },
];

export function Positions() {
  const answer = useQuery({ ...question<ServicesProgress>("master/positions"), refetchInterval: FRESH_MS });
  const rows = answer.data && readings(answer.data);
  return (
    <Card title="Services" more="how far each has read the log, in messages" flush>
      <Loaded answer={answer}>
        {() => (
          <Table
            name="Services"
            rows={rows ?? []}
            id={(reading) => `${reading.program} ${reading.process?.replica} ${reading.stream?.stream}`}
            columns={COLUMNS}
            empty={<Empty title="No service answers">The gateway cannot reach the broker. What is wrong is told above.</Empty>}
          />
        )}
      </Loaded>
    </Card>
  );
}
