/** The REST calls that read a log. */

import { get, query, stream } from "../../api/client";
import type { LogLine } from "../../api/types";
import type { Line } from "./window";

export interface Summary {
  lines: number;
  lastNumber: number;
  levels: Record<string, number>;
  rankIds: number[];
  withoutRank: boolean;
  agentIds: string[];
  allocationIds: string[];
  stdtypes: string[];
  sources: string[];
  lastLine: string | null;
  firstError: string | null;
  failingLine: string | null;
  /** Those of the log's 240 parts that have errors or warnings. */
  marks: { part: number; errors: number; warnings: number }[];
}

interface Page {
  lines: Line[];
  more: boolean;
  /** Id to continue from, and the line number there. */
  cursor: string;
  number: number;
}

type Parameters = Record<string, unknown>;
const DOWN = { orderBy: "ORDER_BY_DESC" };

/** Reads one log; every answer is dropped once `signal` is aborted. */
export class Source {
  constructor(
    readonly path: string,
    private readonly wanted: Parameters,
    readonly signal: AbortSignal,
    /** Receives the line number that a long search has reached; 0 when it is over. */
    private readonly searched: (number: number) => void = () => {},
  ) {}

  /** At most `limit` lines after a line, from a line number, or from the start. */
  behind = (place: { afterId?: number; fromNumber?: number }, limit: number) => this.pages({ ...place }, limit, "afterId");

  /** Lines before a line, or the last ones, in log order. */
  async before(place: { beforeId?: number }, limit: number) {
    const page = await this.pages({ ...place, ...DOWN }, limit, "beforeId");
    return { lines: page.lines.reverse(), ended: page.ended };
  }

  private async pages(place: Parameters, limit: number, cursor: string): Promise<{ lines: Line[]; ended: boolean }> {
    const lines: Line[] = [];
    try {
      for (;;) {
        const page = await this.page({ ...place, limit: limit - lines.length });
        this.signal.throwIfAborted();
        lines.push(...page.lines.map((line) => ({ ...line, id: Number(line.id) })));
        if (!page.more || lines.length >= limit) return { lines, ended: !page.more };
        this.searched(page.number);
        place = { ...place, [cursor]: page.cursor };
      }
    } finally {
      if (!this.signal.aborted) this.searched(0);
    }
  }

  private page = (place: Parameters) => get<Page>(`${this.path}/logs/page${query({ ...this.wanted, ...place })}`);

  /** Yields lines as they arrive, after the given one, until the log is over. */
  async *following(afterId: number): AsyncGenerator<Line[]> {
    const path = `${this.path}/logs${query({ ...this.wanted, mark: "", follow: true, afterId: Math.max(afterId, 0) })}`;
    for await (const page of stream<LogLine>(path, this.signal)) yield page.map(ofStream);
  }
}

function ofStream(line: LogLine): Line {
  const level = line.level.replace("LOG_LEVEL_", "");
  return {
    ...line,
    id: Number(line.id),
    number: 0,
    level: level === "UNSPECIFIED" ? null : level,
    log: line.log.replace(/\n$/, "").slice(0, 8192),
    length: line.log.length > 8193 ? line.log.length - 1 : undefined,
  };
}

export const whole = async (path: string, line: Line): Promise<string> => {
  const page = await get<Page>(`${path}/logs/page${query({ afterId: line.id - 1, limit: 1, whole: true })}`);
  return page.lines[0]?.log ?? line.log;
};
