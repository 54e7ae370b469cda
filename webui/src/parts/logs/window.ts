/** The window of a log that a page holds: it grows at either end and is cut at the other. */

export interface Line {
  id: number;
  /** Line number in the whole log; 0 for a line that was just streamed. */
  number: number;
  timestamp: string;
  level: string | null;
  rankId: number | null;
  allocationId: string | null;
  agentId: string | null;
  source: string;
  stdtype: string;
  log: string;
  /** Length of the whole line in characters, if it was cut. */
  length?: number;
  hits?: [number, number][];
}

export interface Stretch {
  lines: Line[];
  /** No line comes before the first one, or after the last one. */
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

/** `counted`: all lines of the log are shown, so a streamed line continues the numbering of the last one. */
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
      /** How often the line repeats here. */
      times: number;
    }
  | {
      kind: "fold";
      /** Negative, so that it equals no line's id. */
      key: number;
      lines: Line[];
    };

const same = (line: Line, other: Line) =>
  line.log === other.log && line.level === other.level && line.rankId === other.rankId && line.stdtype === other.stdtype;

/** PyTorch prefixes each line of a traceback that ends a distributed process with the rank. */
export const RANK = /^\[rank\d+\]: ?/;
/** Whether this is the first line of a traceback. */
export const isHead = (text: string) => text.replace(RANK, "").startsWith("Traceback (most recent call last)");

/** How many of the lines that follow stay visible, and how many hidden lines make a fold worthwhile. */
const SHOWN = 2;
const LEAST = 3;

interface Folding {
  /** Merges consecutive equal lines. */
  collapse?: boolean;
  /** Lines to fold if several of them are adjacent. */
  folds?: (line: Line) => boolean;
  /** First ids of the folds that are open. */
  open?: ReadonlySet<number>;
}

/** The rows to show. */
export function rowsOf(lines: Line[], { collapse = false, folds, open }: Folding = {}): Row[] {
  const rows: Row[] = [];
  const put = (line: Line) => {
    const last = rows.at(-1);
    if (collapse && last?.kind === "line" && same(last.line, line)) last.times += 1;
    else rows.push({ kind: "line", key: line.id, line, times: 1 });
  };
  let run: Line[] = [];
  const close = () => {
    // A traceback is folded from its first line, which means nothing without the others.
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

/** The row that shows a line; if the line is missing, the next row, or the last one if there is none. */
export function rowOf(rows: Row[], id: number): number {
  const next = rows.findIndex((row) => firstOf(row) > id);
  const at = next < 0 ? rows.length - 1 : next - 1;
  return Math.max(at >= 0 && firstOf(rows[at]!) <= id ? at : next, 0);
}

/**
 * Remembers recent streamed lines while the user is elsewhere, to bridge the gap between the last page and the stream.
 */
export class Recent {
  private lines: Line[] = [];
  private dropped = -1;

  constructor(private readonly most = 4000) {}

  put(lines: Line[]) {
    this.lines.push(...lines);
    const over = this.lines.length - this.most;
    if (over > 0) this.dropped = this.lines.splice(0, over).at(-1)!.id;
  }

  /** Lines after the given one; null if some of them were dropped. */
  behind(id: number): Line[] | null {
    return id >= this.dropped ? this.lines.filter((line) => line.id > id) : null;
  }
}
