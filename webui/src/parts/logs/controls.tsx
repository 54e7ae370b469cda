import { useEffect, useState } from "react";

import { type Choice, type Filters, LEVELS } from "./filters";
import type { Summary } from "./source";

type Change = (change: Record<string, string | null>) => void;

/** Which lines are shown. */
export function FilterControls({ filters, summary, onChange }: { filters: Filters; summary: Summary; onChange: Change }) {
  const { levels } = summary;
  const known = LEVELS.map((name) => [name, levels[`LOG_LEVEL_${name}`] ?? 0] as const);
  const ranks = [...(summary.withoutRank && summary.rankIds.length ? ["-1"] : []), ...summary.rankIds.map(String)];
  const choices: [Choice, string[]][] = [
    ["rank", ranks],
    ["agent", summary.agentIds],
    ["run", summary.allocationIds],
    ["stream", summary.stdtypes],
    ["source", summary.sources],
  ];
  return (
    <>
      <label>
        level
        <select value={filters.level} onChange={(event) => onChange({ level: event.target.value })}>
          <option value="">all</option>
          {known.map(([name], at) => (
            <option key={name} value={name}>{`${name} and above (${known
              .slice(at)
              .reduce((sum, [, count]) => sum + count, 0)
              .toLocaleString("en")})`}</option>
          ))}
        </select>
      </label>
      {choices
        .filter(([name, values]) => name === "rank" || values.length > 1 || filters[name])
        .map(([name, values]) => (
          <label key={name}>
            {name}
            <select value={filters[name]} onChange={(event) => onChange({ [name]: event.target.value })}>
              <option value="">all</option>
              {[...new Set([...values, filters[name]])].filter(Boolean).map((one) => (
                <option key={one} value={one}>
                  {one === "-1" ? "none" : one}
                </option>
              ))}
            </select>
          </label>
        ))}
    </>
  );
}

interface SearchProps {
  filters: Filters;
  onChange: Change;
  onHit: (back: boolean) => void;
}

/** What is looked for, and whether other lines are shown, too. */
export function Search({ filters, onChange, onHit }: SearchProps) {
  const [text, setText] = useState(filters.text);
  useEffect(() => setText(filters.text), [filters.text]);
  const enter = (back: boolean) => (text === filters.text ? text && onHit(back) : onChange({ text, line: null }));
  return (
    <>
      <label>
        search
        <input
          type="search"
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && enter(event.shiftKey)}
          onBlur={() => text !== filters.text && onChange({ text, line: null })}
        />
      </label>
      <label title="A regular expression, as RE2 has it; (?i) at its beginning takes upper and lower case for the same">
        <input type="checkbox" checked={filters.regex} onChange={(event) => onChange({ re: event.target.checked ? "1" : null })} />
        regular expression
      </label>
      {filters.text && (
        <>
          <label>
            <input type="checkbox" checked={filters.only} onChange={(event) => onChange({ all: event.target.checked ? null : "1" })} />
            only hits
          </label>
          <button type="button" onClick={() => onHit(true)} title="Shift+Enter in the search, N in the log">
            Previous hit
          </button>
          <button type="button" onClick={() => onHit(false)} title="Enter in the search, n in the log">
            Next hit
          </button>
        </>
      )}
    </>
  );
}
