/** The stretch of a log that a page holds: grown at either end, cut at the other. */

export interface Line {
  id: number;
  /** Counts the lines of the whole log; 0 for one that has only just come. */
  number: number;
  timestamp: string;
  level: string | null;
  rankId: number | null;
  allocationId: string | null;
  agentId: string | null;
  source: string;
  stdtype: string;
  log: string;
  /** Characters of the whole line, where it was cut. */
  length?: number;
  hits?: [number, number][];
}

export interface Stretch {
  lines: Line[];
  /** Nothing comes before the first line, behind the last line. */
  atStart: boolean;
  atEnd: boolean;
}

export const KEPT = 1200;
export const NOTHING: Stretch = { lines: [], atStart: false, atEnd: false };

export function before(held: Stretch, lines: Line[], atStart: boolean): Stretch {
  const first = held.lines[0]?.id ?? Infinity;
  const whole = [...lines.filter((line) => line.id < first), ...held.lines];
  return { lines: whole.slice(0, KEPT), atStart, atEnd: held.atEnd && whole.length <= KEPT };
}

export function behind(held: Stretch, lines: Line[], atEnd: boolean): Stretch {
  const last = held.lines.at(-1)?.id ?? -1;
  const whole = [...held.lines, ...lines.filter((line) => line.id > last)];
  return { lines: whole.slice(-KEPT), atStart: held.atStart && whole.length <= KEPT, atEnd };
}

export interface Row {
  line: Line;
  /** How often it stands here in a row. */
  times: number;
}

const same = (one: Line, other: Line) =>
  one.log === other.log && one.level === other.level && one.rankId === other.rankId && one.stdtype === other.stdtype;

/** Rows to show; with `collapse` lines that repeat the one before become one. */
export function rowsOf(lines: Line[], collapse: boolean): Row[] {
  const rows: Row[] = [];
  for (const line of lines) {
    const last = rows.at(-1);
    if (collapse && last && same(last.line, line)) last.times += 1;
    else rows.push({ line, times: 1 });
  }
  return rows;
}

/** The row that shows a line, or the next one where the line itself is not there; the last when none follows. */
export function rowOf(rows: Row[], id: number): number {
  const next = rows.findIndex((row) => row.line.id > id);
  const at = next < 0 ? rows.length - 1 : next - 1;
  return Math.max(at >= 0 && rows[at]!.line.id <= id ? at : next, 0);
}

/** What of newly come lines is remembered while the reader is elsewhere, to go on where pages end. */
export class Recent {
  private lines: Line[] = [];
  private dropped = -1;

  constructor(private readonly most = 4000) {}

  put(lines: Line[]) {
    this.lines.push(...lines);
    const over = this.lines.length - this.most;
    if (over > 0) this.dropped = this.lines.splice(0, over).at(-1)!.id;
  }

  /** Lines behind one; null when some of them are forgotten. */
  behind(id: number): Line[] | null {
    return id >= this.dropped ? this.lines.filter((line) => line.id > id) : null;
  }
}
