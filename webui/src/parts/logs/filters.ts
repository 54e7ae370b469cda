/** The filters of a log in three forms: in the address, in a request to the server, and on a command line. */

import { query } from "../../api/client";

export const LEVELS = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

export interface Filters {
  level: string;
  rank: string;
  agent: string;
  run: string;
  stream: string;
  source: string;
  text: string;
  regex: boolean;
  /** Show only lines that contain the text; otherwise show all lines, and jump between the hits. */
  only: boolean;
}

export const CHOICES = ["level", "rank", "agent", "run", "stream", "source"] as const;
export type Choice = (typeof CHOICES)[number];

export function filtersOf(params: URLSearchParams): Filters {
  const choices = Object.fromEntries(CHOICES.map((name) => [name, params.get(name) ?? ""])) as Record<Choice, string>;
  return { ...choices, text: params.get("text") ?? "", regex: params.get("re") === "1", only: params.get("all") !== "1" };
}

const atLeast = (level: string) => (level ? LEVELS.slice(LEVELS.indexOf(level)) : []);

function chosen(filters: Filters) {
  return {
    levels: atLeast(filters.level).map((level) => `LOG_LEVEL_${level}`),
    rankIds: filters.rank,
    agentIds: filters.agent,
    allocationIds: filters.run,
    stdtypes: filters.stream,
    sources: filters.source,
  };
}

const searched = (filters: Filters) => (filters.text ? (filters.regex ? { regex: filters.text } : { searchText: filters.text }) : {});

/** Parameters for the lines that are shown. */
export const shown = (filters: Filters) => ({ ...chosen(filters), ...(filters.only ? searched(filters) : {}) });

/** Parameters for the hits among the lines shown. */
export const hits = (filters: Filters) => ({ ...chosen(filters), ...searched(filters) });

export const isFiltered = (filters: Filters) => query(shown(filters)) !== "";

const quoted = (text: string) => (/^[\w.,:=@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** The `det` command that prints the same lines; `file` is where it writes them. */
export function commandLine(command: string, filters: Filters, file = ""): string {
  const search = filters.only && filters.text ? [filters.regex ? "--regex" : "--search", filters.text] : [];
  const options: [string, string][] = [
    ["--level", filters.level],
    ["--rank-id", filters.rank],
    ["--agent-id", filters.agent],
    ["--allocation-id", filters.run],
    ["--stdtype", filters.stream],
    ["--source", filters.source],
  ];
  const words = [...options.filter(([, value]) => value).flat(), ...search];
  return [command, ...words.map(quoted), ...(file ? [">", file] : [])].join(" ");
}
