import { memo, type ReactNode } from "react";

import { stretches } from "./ansi";
import type { Row } from "./window";

type Span = [number, number];

function spansOf(text: string, part: string): Span[] {
  const found: Span[] = [];
  for (let at = part ? text.indexOf(part) : -1; at >= 0; at = text.indexOf(part, at + part.length)) found.push([at, at + part.length]);
  return found;
}

/** Text with its hits marked; `from` is where it begins in the line. */
function marked(text: string, from: number, spans: Span[]): ReactNode {
  const parts: ReactNode[] = [];
  let at = 0;
  for (const [start, end] of spans) {
    const [first, last] = [Math.max(start - from, at), Math.min(end - from, text.length)];
    if (first >= last) continue;
    parts.push(text.slice(at, first), <mark key={first}>{text.slice(first, last)}</mark>);
    at = last;
  }
  return parts.length ? [...parts, text.slice(at)] : text;
}

function Text({ text, hits, part }: { text: string; hits?: Span[]; part: string }) {
  const found = stretches(text);
  const clean = found.map((one) => one.text).join("");
  // The server counts in the text as it is: where escapes are left out, its places no longer fit.
  const spans = part ? spansOf(clean, part) : clean === text ? (hits ?? []) : [];
  let from = 0;
  return found.map((one, at) => {
    const shown = marked(one.text, from, spans);
    from += one.text.length;
    return one.style ? (
      <span key={at} className={one.style}>
        {shown}
      </span>
    ) : (
      <span key={at}>{shown}</span>
    );
  });
}

interface Props {
  row: Row;
  times: boolean;
  ranked: boolean;
  levelled: boolean;
  part: string;
  chosen: boolean;
  opened?: string;
}

/** One line of the log. */
export const LineRow = memo(function LineRow({ row: { line, times: count }, times, ranked, levelled, part, chosen, opened }: Props) {
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus, and names the line that is chosen
    <div
      id={`line-${line.id}`}
      data-id={line.id}
      role="option"
      aria-selected={chosen}
      className={`line ${line.level ?? ""} ${line.stdtype}${chosen ? " chosen" : ""}`}
    >
      {times && <time title={line.timestamp}>{clock(line.timestamp)}</time>}
      {ranked && (
        <span className="rank" title={line.rankId === null ? undefined : `rank ${line.rankId}`}>
          {line.rankId}
        </span>
      )}
      {levelled && <span className="level">{line.level}</span>}
      <span className="text">
        <Text text={opened ?? line.log} hits={line.hits} part={part} />
        {line.length !== undefined && opened === undefined && (
          <em className="soft"> … {(line.length - line.log.length).toLocaleString("en")} more characters</em>
        )}
      </span>
      {count > 1 && (
        <span className="label" title={`${count} times in a row`}>
          ×{count}
        </span>
      )}
    </div>
  );
});

const pad = (value: number, digits = 2) => String(value).padStart(digits, "0");

/** Time of day in the reader's zone. */
function clock(timestamp: string): string {
  const at = new Date(timestamp);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}
