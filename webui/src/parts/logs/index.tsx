/** The log of a trial or task: a window that moves through all of it, with filters, search and links to lines. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useSearchParams } from "react-router";

import { get, query } from "../../api/client";
import { Copyable, Empty, Failure, Loaded } from "../basics";
import { number } from "../format";
import { plain } from "./ansi";
import { FilterControls, Search } from "./controls";
import { commandLine, filtersOf, hits, isFiltered, shown } from "./filters";
import { LineList } from "./list";
import { type Reading, type Target, useReading } from "./reading";
import { Source, type Summary, whole } from "./source";
import type { Line } from "./window";

const FRESH_MS = 5000;

interface Props {
  /** Path of whose log it is, such as `trials/7`. */
  source: string;
  command: string;
  /** It ended in an error: the log opens where that shows. */
  failed?: boolean;
}

export function Logs(props: Props) {
  const [over, setOver] = useState(false);
  const found = useQuery({
    queryKey: ["log", props.source],
    queryFn: () => get<Summary>(`${props.source}/logs/summary`),
    refetchInterval: over ? false : FRESH_MS,
  });
  return <Loaded found={found}>{(summary) => <Log key={props.source} {...props} summary={summary} onOver={setOver} />}</Loaded>;
}

const NO = "0";

function Log({ source, command, failed, summary, onOver }: Props & { summary: Summary; onOver: (over: boolean) => void }) {
  const [params, setParams] = useSearchParams();
  const filters = filtersOf(params);
  const chosen = params.get("line") ? Number(params.get("line")) : null;
  const change = (values: Record<string, string | null>) =>
    setParams(
      (before) => {
        Object.entries(values).forEach(([name, value]) => (value ? before.set(name, value) : before.delete(name)));
        return before;
      },
      { replace: true },
    );

  const opening = useRef<Target>(openingOf(params, failed ? summary : null)).current;
  const mark = filters.text && filters.regex ? { mark: filters.text } : {};
  const reading = useReading(
    source,
    { ...shown(filters), ...mark },
    chosen !== null ? { id: chosen } : opening,
    Number(summary.lastLine ?? 0),
  );
  const [top, setTop] = useState(0);
  const [opened, setOpened] = useState<{ id: number; text: string } | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => onOver(reading.over), [onOver, reading.over]);
  const line = reading.lines.find((one) => one.id === chosen);

  const leap = (id: string | null) => {
    if (id === null) return;
    // Filters may hide the line.
    if (isFiltered(filters)) setParams(new URLSearchParams({ line: id }), { replace: true });
    else change({ line: id });
    reading.go({ id: Number(id) });
  };
  const hit = async (back: boolean) => {
    const asked = new Source(source, hits(filters), new AbortController().signal, reading.tellSearched);
    const from = chosen ?? reading.lines[0]?.id ?? 0;
    const place = await (back ? asked.before({ beforeId: from }, 1) : asked.behind({ afterId: chosen ?? from - 1 }, 1));
    const id = place.lines[0]?.id;
    if (id === undefined) return reading.tell(back ? "No hit before this line." : "No hit behind this line.");
    change({ line: String(id) });
    reading.go({ id });
  };
  const onKey = (key: string): boolean => {
    if (key === "Home") reading.go("start");
    else if (key === "End") reading.go("end");
    else if (key === "n" || key === "N") void (filters.text && hit(key === "N"));
    else if (key === "e") leap(summary.firstError);
    else if (key === "Escape") change({ line: null });
    else return false;
    return true;
  };

  return (
    <div className="logs" ref={frame}>
      <div className="controls">
        <FilterControls filters={filters} summary={summary} onChange={change} />
        <Search filters={filters} onChange={change} onHit={(back) => void hit(back)} />
      </div>
      <div className="controls">
        {failed && summary.failingLine && (
          <button type="button" onClick={() => leap(summary.failingLine)} title="The last error of the lowest rank that failed">
            Failing line
          </button>
        )}
        <button
          type="button"
          disabled={!summary.firstError}
          onClick={() => leap(summary.firstError)}
          title={summary.firstError ? "e" : "No line is an error"}
        >
          First error
        </button>
        <button type="button" onClick={() => reading.go("start")}>
          Start
        </button>
        <button type="button" onClick={() => reading.go("end")}>
          {reading.over ? "End" : "Follow"}
        </button>
        <Toggle name="times" label="time stamps" params={params} onChange={change} />
        <Toggle name="wrap" label="wrap" params={params} onChange={change} />
        <Toggle name="collapse" label="collapse repeats" params={params} onChange={change} usually={false} />
        <button
          type="button"
          onClick={() => void copyLines(reading.lines)}
          title={`The ${reading.lines.length} lines around here, as plain text`}
        >
          Copy
        </button>
        <a href={`/api/v1/${source}/logs/download${query(shown(filters))}`} download>
          {isFiltered(filters) ? "Download what is filtered" : "Download"}
        </a>
        <button
          type="button"
          onClick={() => void (document.fullscreenElement ? document.exitFullscreen() : frame.current?.requestFullscreen())}
        >
          Full screen
        </button>
      </div>
      <Place reading={reading} summary={summary} top={top} filtered={isFiltered(filters)} />
      {reading.error ? <Failure error={reading.error} /> : null}
      {!reading.lines.length && !reading.error && !reading.busy && (
        <Empty>
          {isFiltered(filters)
            ? "No line fits."
            : reading.over
              ? "Nothing was printed."
              : "No lines yet; they appear here as they are printed."}
        </Empty>
      )}
      <LineList
        reading={reading}
        collapse={params.get("collapse") === "1"}
        times={params.get("times") !== NO}
        wrap={params.get("wrap") !== NO}
        columns={{ rank: summary.rankIds.length > 0, level: Object.keys(summary.levels).some((name) => name !== "LOG_LEVEL_UNSPECIFIED") }}
        part={filters.regex ? "" : filters.text}
        chosen={chosen}
        opened={opened}
        onChoose={(id) => change({ line: id === chosen ? null : String(id) })}
        onKey={onKey}
        onTop={setTop}
      />
      <Chosen
        line={line}
        onContext={isFiltered(filters) ? () => leap(String(chosen)) : undefined}
        onWhole={async () => line && setOpened({ id: line.id, text: await whole(source, line) })}
      />
      <p className="soft">
        The same in a terminal: <Copyable text={commandLine(command, filters)} />
      </p>
    </div>
  );
}

/** Where a log opens that no link to a line leads to. */
function openingOf(params: URLSearchParams, failed: Summary | null): Target {
  const at = params.get("at");
  if (at) return { at };
  return failed?.failingLine && !isFiltered(filtersOf(params)) ? { id: Number(failed.failingLine) } : "end";
}

interface ToggleProps {
  name: string;
  label: string;
  params: URLSearchParams;
  onChange: (change: Record<string, string | null>) => void;
  usually?: boolean;
}

function Toggle({ name, label, params, onChange, usually = true }: ToggleProps) {
  const on = params.has(name) ? params.get(name) !== NO : usually;
  return (
    <label>
      <input type="checkbox" checked={on} onChange={() => onChange({ [name]: on === usually ? (on ? NO : "1") : null })} />
      {label}
    </label>
  );
}

/** Where in the log the window is, and what has come meanwhile. */
function Place({ reading, summary, top, filtered }: { reading: Reading; summary: Summary; top: number; filtered: boolean }) {
  const [moved, setMoved] = useState<number | null>(null);
  useEffect(() => {
    if (moved === null) return;
    const timer = setTimeout(() => {
      reading.go({ number: moved });
      setMoved(null);
    }, 150);
    return () => clearTimeout(timer);
  }, [moved, reading]);
  const end = summary.lastNumber;
  const first = Math.max(end - summary.lines + 1, 1);
  const here = moved ?? (reading.following ? end : top || reading.lines[0]?.number || first);
  const state = reading.over ? "" : reading.following ? " · following" : " · not following";
  const said = useMemo(() => {
    if (reading.searched) return `searched up to line ${number(reading.searched)} of ${number(end)}`;
    if (reading.told) return reading.told;
    return `${filtered ? `${number(reading.lines.length)} of the lines that fit are here` : `${number(summary.lines)} lines`}${state}`;
  }, [reading.searched, reading.told, reading.lines.length, filtered, summary.lines, end, state]);
  return (
    <div className="controls place">
      <input
        type="range"
        aria-label="Place in the log"
        aria-valuetext={`line ${number(here)} of ${number(end)}`}
        min={first}
        max={Math.max(end, first)}
        value={Math.min(here, Math.max(end, first))}
        onChange={(event) => setMoved(Number(event.target.value))}
      />
      <span>
        line {number(here)} of {number(end)}
      </span>
      <span role="status">{said}</span>
      {reading.came > 0 && !reading.following && (
        <button type="button" className="main" onClick={() => reading.go("end")}>
          {number(reading.came)} new {reading.came === 1 ? "line" : "lines"} ↓
        </button>
      )}
    </div>
  );
}

/** What is known of the line that is chosen. */
function Chosen({ line, onContext, onWhole }: { line?: Line; onContext?: () => void; onWhole: () => void }) {
  if (!line) return <p className="soft">Click a line, or reach it with the arrow keys, to link to it: it is part of the address.</p>;
  const facts = [
    line.number ? `line ${number(line.number)}` : "",
    line.timestamp,
    line.rankId === null ? "" : `rank ${line.rankId}`,
    line.agentId,
    line.allocationId && `run ${line.allocationId}`,
    `${line.source}, ${line.stdtype}`,
  ];
  return (
    <p className="soft controls" aria-label="Chosen line" role="group">
      <span>{facts.filter(Boolean).join(" · ")}</span>
      <button type="button" onClick={() => void copyLines([line])}>
        Copy line
      </button>
      <button type="button" onClick={() => void navigator.clipboard?.writeText(location.href)}>
        Copy link
      </button>
      {onContext && (
        <button type="button" onClick={onContext}>
          Show what is around it
        </button>
      )}
      {line.length !== undefined && (
        <button type="button" onClick={onWhole}>
          Show the whole line
        </button>
      )}
    </p>
  );
}

const copyLines = (lines: Line[]) =>
  navigator.clipboard?.writeText(
    lines
      .map(
        (one) =>
          `[${one.timestamp}]${one.rankId === null ? "" : ` [rank=${one.rankId}]`} || ${one.level ? `${one.level}: ` : ""}${plain(one.log)}\n`,
      )
      .join(""),
  );
