import { memo, type ReactNode } from "react";

import type { Marked } from "./cause";
import { stretches } from "./paint";
import type { Line } from "./window";

type Span = [number, number];

function spansOf(text: string, part: string): Span[] {
  const spans: Span[] = [];
  for (let at = part ? text.indexOf(part) : -1; at >= 0; at = text.indexOf(part, at + part.length)) spans.push([at, at + part.length]);
  return spans;
}

/** The text with its hits highlighted; `from` is the offset of the text within the line. */
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
  const parts = stretches(text);
  const clean = parts.map((stretch) => stretch.text).join("");
  // The server's offsets refer to the raw text; they do not apply once escape sequences are removed.
  const spans = part ? spansOf(clean, part) : clean === text ? (hits ?? []) : [];
  let from = 0;
  return parts.map((stretch, at) => {
    const shown = marked(stretch.text, from, spans);
    from += stretch.text.length;
    return stretch.style ? (
      <span key={at} className={stretch.style}>
        {shown}
      </span>
    ) : (
      <span key={at}>{shown}</span>
    );
  });
}

interface Props {
  line: Line;
  /** How often the line repeats here. */
  times: number;
  marked?: Marked;
  stamps: boolean;
  ranked: boolean;
  part: string;
  chosen: boolean;
  opened?: string;
}

/** Levels that are shown as a word. */
const SAID = new Set(["WARNING", "ERROR", "CRITICAL"]);

/** One line of the log. */
export const LineRow = memo(function LineRow({ line, times, marked, stamps, ranked, part, chosen, opened }: Props) {
  const classes = [
    "line",
    line.level ?? "",
    line.stdtype,
    marked?.mark ? `is-${marked.mark}` : "",
    marked?.isCause ? "of-cause" : "",
    chosen ? "chosen" : "",
  ];
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and refers to the selected line
    <div id={`line-${line.id}`} data-id={line.id} role="option" aria-selected={chosen} className={classes.filter(Boolean).join(" ")}>
      <span className="n">{line.number || ""}</span>
      {stamps && <time title={line.timestamp}>{clock(line.timestamp)}</time>}
      {ranked && (
        <span className="rank" title={line.rankId === null ? "no rank" : `rank ${line.rankId}`}>
          {line.rankId ?? "–"}
        </span>
      )}
      <span className="text">
        {line.level && SAID.has(line.level) && <b className="level">{line.level} </b>}
        <Text text={opened ?? line.log} hits={line.hits} part={part} />
        {line.length !== undefined && opened === undefined && (
          <em className="ink3"> … {(line.length - line.log.length).toLocaleString("en")} more characters</em>
        )}
      </span>
      {times > 1 && (
        <span className="tag" title={`${times} times in a row`}>
          ×{times}
        </span>
      )}
    </div>
  );
});

const pad = (value: number, digits = 2) => String(value).padStart(digits, "0");

/** Time of day in the user's time zone. */
export function clock(timestamp: string): string {
  const at = new Date(timestamp);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}
