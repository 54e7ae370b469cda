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

/** `counted`: all lines of the log are wanted, so one that has just come has the number behind the last one's. */
export function behind(held: Stretch, lines: Line[], atEnd: boolean, counted = false): Stretch {
  const last = held.lines.at(-1);
  let number = counted ? (last?.number ?? 0) : 0;
  const fresh = lines
    .filter((line) => line.id > (last?.id ?? -1))
    .map((line) => {
      if (line.number || !number) {
        number = counted ? line.number : 0;
        return line;
      }
      number += 1;
      return { ...line, number };
    });
  const whole = [...held.lines, ...fresh];
  return { lines: whole.slice(-KEPT), atStart: held.atStart && whole.length <= KEPT, atEnd };
}

export type Row =
  | {
      kind: "line";
      key: number;
      line: Line;
      /** How often it stands here in a row. */
      times: number;
    }
  | {
      kind: "fold";
      /** Negative: no line has it. */
      key: number;
      lines: Line[];
    };

const same = (one: Line, other: Line) =>
  one.log === other.log && one.level === other.level && one.rankId === other.rankId && one.stdtype === other.stdtype;

/** PyTorch puts the rank before each line of a traceback that ends a distributed process. */
export const RANK = /^\[rank\d+\]: ?/;
/** Whether it is the first line of a traceback. */
export const isHead = (text: string) => text.replace(RANK, "").startsWith("Traceback (most recent call last)");

/** So many lines of what follows stay in sight, and fewer than that are not worth a fold. */
const SHOWN = 2;
const LEAST = 3;

interface Folding {
  /** Lines that repeat the one before become one. */
  collapse?: boolean;
  /** Lines that are folded where several of them follow one another. */
  folds?: (line: Line) => boolean;
  /** First ids of folds that are open. */
  open?: ReadonlySet<number>;
}

/** Rows to show. */
export function rowsOf(lines: Line[], { collapse = false, folds, open }: Folding = {}): Row[] {
  const rows: Row[] = [];
  const put = (line: Line) => {
    const last = rows.at(-1);
    if (collapse && last?.kind === "line" && same(last.line, line)) last.times += 1;
    else rows.push({ kind: "line", key: line.id, line, times: 1 });
  };
  let run: Line[] = [];
  const close = () => {
    // A traceback is folded with its first line: without the others it says nothing.
    const head = run.findIndex((line) => isHead(line.log));
    const shown = run.slice(0, head < 0 ? SHOWN : Math.min(head, SHOWN));
    const hidden = run.slice(shown.length);
    const isOpen = hidden.length < LEAST || open?.has(hidden[0]!.id);
    (isOpen ? run : shown).forEach(put);
    if (!isOpen) rows.push({ kind: "fold", key: -hidden[0]!.id, lines: hidden });
    run = [];
  };
  for (const line of lines) {
    if (folds?.(line)) run.push(line);
    else {
      close();
      put(line);
    }
  }
  close();
  return rows;
}

const firstOf = (row: Row) => (row.kind === "line" ? row.line.id : row.lines[0]!.id);

/** The row that shows a line, or the next one where the line itself is not there; the last when none follows. */
export function rowOf(rows: Row[], id: number): number {
  const next = rows.findIndex((row) => firstOf(row) > id);
  const at = next < 0 ? rows.length - 1 : next - 1;
  return Math.max(at >= 0 && firstOf(rows[at]!) <= id ? at : next, 0);
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
