/** Why a task failed: who failed first over all ranks, as determined by the server. */

import { failedRanks } from "./ranks";
import { isHead, type Line, RANK } from "./window";

interface Told {
  id: string;
  number: number;
  timestamp: string;
  level: string | null;
  log: string;
}
export interface RankEnd {
  rankId: number | null;
  agentId: string | null;
  lastTimestamp: string;
  failedTimestamp: string | null;
  line: string | null;
}
export interface Cause {
  allocationId: string;
  agentId: string | null;
  rankId: number | null;
  words: string;
  first: Told;
  said: Told;
  place: { file: string; line: number; function: string } | null;
  before: Told | null;
  ranks: RankEnd[];
}

/** What a line is: part of a traceback, of the cause, or the line that says what was wrong. */
export type Mark = "" | "head" | "frame" | "own" | "said";
export interface Marked {
  mark: Mark;
  isCause: boolean;
}

const FRAME = /^\s+File "([^"]+)", line \d+/;
const FOREIGN = /\/(site|dist)-packages\/|\/lib\/python\d|^</;

/** Identifies a writer: a rank of a run, on its stream. */
const writer = (line: Line) => `${line.allocationId} ${line.rankId}`;

/** The marks of lines, by id. Lines of several ranks may be interleaved. */
export function marksOf(lines: Line[], cause: Cause | null): Map<number, Marked> {
  const marks = new Map<number, Marked>();
  const open = new Set<string>();
  const [from, to] = cause ? [Number(cause.first.id), Number(cause.said.id)] : [1, 0];
  for (const line of lines) {
    const who = writer(line);
    const text = line.log.replace(RANK, "");
    const isCause = line.id >= from && line.id <= to && line.rankId === cause!.rankId && (line.allocationId ?? "") === cause!.allocationId;
    let mark: Mark = "";
    if (isHead(line.log)) {
      open.add(who);
      mark = "head";
    } else if (open.has(who)) {
      const frame = FRAME.exec(text);
      if (frame) mark = FOREIGN.test(frame[1]!) ? "frame" : "own";
      else if (text && !/^\s/.test(text)) {
        open.delete(who);
        mark = "said";
      }
    }
    if (isCause && line.id === to) mark = "said";
    if (mark || isCause) marks.set(line.id, { mark, isCause });
  }
  return marks;
}

/** Whether a line of another rank follows from the failure. */
export const follows = (line: Line, cause: Cause | null): boolean =>
  cause !== null &&
  line.rankId !== null &&
  line.rankId !== cause.rankId &&
  (line.allocationId ?? "") === cause.allocationId &&
  Date.parse(line.timestamp) >= Date.parse(cause.first.timestamp) &&
  line.id > Number(cause.first.id);

/** `Rank 13 failed first: GPU memory ran out` */
export const headline = (cause: Cause) => {
  const who = cause.rankId === null ? "It failed" : `Rank ${cause.rankId} failed${failedRanks(cause.ranks) > 1 ? " first" : ""}`;
  return cause.words ? `${who}: ${cause.words}` : who;
};

/** The part of a path that a reader recognizes. */
export const shortPath = (file: string) =>
  file
    .replace(/^.*\/(?:workdir|context|src)\//, "")
    .split("/")
    .slice(-3)
    .join("/");

const seconds = (from: string, to: string) => Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000);

export function elapsed(from: string, to: string): string {
  const whole = seconds(from, to);
  return whole < 10 ? `${whole.toFixed(1)} s` : whole < 600 ? `${Math.round(whole)} s` : `${Math.round(whole / 60)} min`;
}

const SHOWN_S = 0.05;
/** How long before the failure a line was written: `3.2 s before`. The clocks of two writers may even say after it. */
export const lead = (from: string, to: string) => (seconds(from, to) < SHOWN_S ? "just before" : `${elapsed(from, to)} before`);
