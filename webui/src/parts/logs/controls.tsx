/** The toolbar above the lines. */

import { Clock, Download, Maximize2, Search as Glass, SlidersHorizontal, TextAlignStart, WrapText } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";

import { query } from "../../api/client";
import { Button, IconButton, LinkButton, Segments } from "../../ui/button";
import { Check, Select } from "../../ui/field";
import { useNarrow } from "../../ui/media";
import { Popover } from "../../ui/menu";
import { type Choice, type Filters, isFiltered, LEVELS, shown } from "./filters";
import type { Summary } from "./source";
import { many } from "../format";

export type Change = (change: Record<string, string | null>) => void;
export const NO = "0";

type Place = "start" | "cause" | "errors" | "end" | "";

interface Props {
  source: string;
  filters: Filters;
  summary: Summary;
  params: URLSearchParams;
  place: Place;
  /** The cause of a failure is known; `over`: no more lines will come. */
  hasCause: boolean;
  over: boolean;
  onChange: Change;
  onHit: (back: boolean) => void;
  onPlace: (place: Place) => void;
  onCopy: () => void;
  onFull: () => void;
}

export function Tools({ source, filters, summary, params, place, hasCause, over, onChange, onHit, onPlace, onCopy, onFull }: Props) {
  const { levels, lines } = summary;
  const errors = summary.marks.reduce((sum, part) => sum + part.errors, 0);
  const places: [Place, string][] = [
    ["start", "Start"],
    ...(hasCause ? ([["cause", "At the cause"]] as [Place, string][]) : []),
    ...(summary.firstError ? ([["errors", errors ? `Errors ${errors.toLocaleString("en")}` : "Errors"]] as [Place, string][]) : []),
    ["end", over ? "End" : "Follow"],
  ];
  const narrow = useNarrow();
  const levelsAndRanks = (
    <>
      <Select
        small={!narrow}
        above={narrow}
        label="Level"
        value={filters.level}
        options={levelsOf(levels)}
        onChange={(level) => onChange({ level })}
      />
      {summary.rankIds.length > 0 && (
        <Select
          small={!narrow}
          above={narrow}
          label="Ranks"
          value={filters.rank}
          options={ranksOf(summary)}
          onChange={(rank) => onChange({ rank })}
        />
      )}
    </>
  );
  const used = narrow ? Number(Boolean(filters.level)) + Number(Boolean(filters.rank)) : 0;
  const looks = <Looks {...{ source, filters, params, hasCause, onChange, onFull }} />;
  return (
    <div className="toolbar tools">
      <Search filters={filters} lines={lines} onChange={onChange} onHit={onHit} />
      {!narrow && levelsAndRanks}
      <More used={used} {...{ filters, summary, params, onChange, onHit, onCopy }}>
        {narrow && (
          <>
            {levelsAndRanks}
            <div className="toolbar">{looks}</div>
          </>
        )}
      </More>
      <Segments small name="Go to" value={place} options={places} onChange={onPlace} />
      {!narrow && (
        <>
          <span className="sp" />
          {looks}
        </>
      )}
    </div>
  );
}

/** How lines are shown, and where else they can be had. */
function Looks({
  source,
  filters,
  params,
  hasCause,
  onChange,
  onFull,
}: Pick<Props, "source" | "filters" | "params" | "hasCause" | "onChange" | "onFull">) {
  const on = (name: string) => params.get(name) !== NO;
  const toggle = (name: string) => onChange({ [name]: on(name) ? NO : null });
  return (
    <>
      {hasCause && (
        <Button
          small
          kind="ghost"
          icon={<TextAlignStart />}
          pressed={on("fold")}
          onClick={() => toggle("fold")}
          tip="Lines of other ranks caused by the failure"
        >
          Fold what follows
        </Button>
      )}
      <IconButton icon={<WrapText />} label="Wrap lines" pressed={on("wrap")} onClick={() => toggle("wrap")} />
      <IconButton icon={<Clock />} label="Time stamps" pressed={on("times")} onClick={() => toggle("times")} />
      <LinkButton
        small
        kind="ghost"
        icon={<Download />}
        label={isFiltered(filters) ? "Download filtered lines" : "Download"}
        href={`/api/v1/${source}/logs/download${query(shown(filters))}`}
      />
      <IconButton icon={<Maximize2 />} label="Full screen" onClick={onFull} />
    </>
  );
}

function levelsOf(levels: Record<string, number>): [string, string][] {
  const counts = LEVELS.map((name) => [name, levels[`LOG_LEVEL_${name}`] ?? 0] as const);
  const above = (at: number) => counts.slice(at).reduce((sum, [, count]) => sum + count, 0);
  const words = counts.map(([name], at): [string, string] => [name, `${name} and above (${above(at).toLocaleString("en")})`]);
  return [["", "all"], ...words];
}

function ranksOf(summary: Summary): [string, string][] {
  const ranks = summary.rankIds.map((rank): [string, string] => [String(rank), String(rank)]);
  return [["", `all ${ranks.length}`], ...(summary.withoutRank ? ([["-1", "none"]] as [string, string][]) : []), ...ranks];
}

/** The search field. */
function Search({
  filters,
  lines,
  onChange,
  onHit,
}: {
  filters: Filters;
  lines: number;
  onChange: Change;
  onHit: (back: boolean) => void;
}) {
  const [text, setText] = useState(filters.text);
  useEffect(() => setText(filters.text), [filters.text]);
  const enter = (back: boolean) => (text === filters.text ? text && onHit(back) : onChange({ text, line: null }));
  return (
    <span className="field s search">
      <Glass className="s" />
      <input
        type="search"
        aria-label="Search in the log"
        placeholder={filters.regex ? "Regular expression" : `Search in ${many(lines, "line")}`}
        value={text}
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && enter(event.shiftKey)}
        onBlur={() => text !== filters.text && onChange({ text, line: null })}
      />
      {!text && <kbd aria-hidden>/</kbd>}
    </span>
  );
}

const NAMES: [Choice, string, (summary: Summary) => string[]][] = [
  ["agent", "Agent", (summary) => summary.agentIds],
  ["run", "Run", (summary) => summary.allocationIds],
  ["stream", "Stream", (summary) => summary.stdtypes],
  ["source", "Source", (summary) => summary.sources],
];

interface MoreProps {
  /** How many of `children` are in use. */
  used: number;
  children: ReactNode;
  filters: Filters;
  summary: Summary;
  params: URLSearchParams;
  onChange: Change;
  onHit: (back: boolean) => void;
  onCopy: () => void;
}

/** The less common tools; `children` come first. */
function More({ used, children, filters, summary, params, onChange, onHit, onCopy }: MoreProps) {
  const all =
    used +
    NAMES.filter(([name]) => filters[name]).length +
    Number(filters.regex) +
    Number(!filters.only) +
    Number(params.get("collapse") === "1");
  return (
    <Popover small kind="ghost" icon={<SlidersHorizontal />} label="More filters" count={all || undefined}>
      <div className="form">
        {children}
        {NAMES.map(([name, label, values]) => (
          <Select
            key={name}
            above
            label={label}
            value={filters[name]}
            options={[
              ["", "all"],
              ...[...new Set([...values(summary), filters[name]])].filter(Boolean).map((value): [string, string] => [value, value]),
            ]}
            onChange={(value) => onChange({ [name]: value })}
          />
        ))}
        <Check
          label={<span title="RE2 syntax; start with (?i) to ignore case">The search is a regular expression</span>}
          checked={filters.regex}
          onChange={(on) => onChange({ re: on ? "1" : null })}
        />
        <Check label="Show only matching lines" checked={filters.only} onChange={(on) => onChange({ all: on ? null : "1" })} />
        <Check
          label="Merge repeated lines"
          checked={params.get("collapse") === "1"}
          onChange={(on) => onChange({ collapse: on ? "1" : null })}
        />
        <div className="foot">
          <Button small keys="Shift N" not={filters.text ? undefined : "No search"} onClick={() => onHit(true)}>
            Previous hit
          </Button>
          <Button small keys="N" not={filters.text ? undefined : "No search"} onClick={() => onHit(false)}>
            Next hit
          </Button>
          <Button small onClick={onCopy} tip="The surrounding lines, as plain text">
            Copy lines
          </Button>
        </div>
      </div>
    </Popover>
  );
}
