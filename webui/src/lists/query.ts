/**
 * The query of a list and its filter form: two notations of one tree.
 *
 * In `state:ACTIVE hp.lr<1e-3 (tag:sweep OR tag:paper) -user:admin words`, adjacent terms are joined by AND, a minus
 * means NOT, and a bare word searches the name. A colon means equality, except in names, descriptions, notes and tags,
 * where it matches a part; `~` always matches a part. Values with spaces go between quotes.
 */

export interface Field {
  kind: "field";
  columnName: string;
  operator: string;
  value: string;
}
export interface Group {
  kind: "group";
  conjunction: "and" | "or";
  children: Node[];
}
export type Node = Field | Group;

export class QueryError extends Error {}

export const ALIASES: Record<string, string> = {
  tag: "tags",
  label: "tags",
  pool: "resourcePool",
  searcher: "searcherType",
  started: "startTime",
  ended: "endTime",
  trials: "numTrials",
  best: "searcherMetricsVal",
  forked: "forkedFrom",
  checkpoints: "checkpointCount",
  size: "checkpointSize",
  ran: "runningTime",
  project: "projectId",
};
const SHORT = Object.fromEntries(
  Object.entries(ALIASES)
    .reverse()
    .map(([short, name]) => [name, short]),
);
const PARTLY = new Set(["name", "description", "tags", "notes"]);
const OPPOSITE: Record<string, string> = {
  "=": "!=",
  "!=": "=",
  contains: "notContains",
  notContains: "contains",
  isEmpty: "notEmpty",
  notEmpty: "isEmpty",
  "<": ">=",
  ">=": "<",
  ">": "<=",
  "<=": ">",
};
const NONE = "none";
const SOME = "some";

export const empty = (): Group => ({ kind: "group", conjunction: "and", children: [] });
export const field = (columnName: string, operator: string, value: string): Field => ({ kind: "field", columnName, operator, value });

type Token = { kind: "(" | ")" | "OR" | "AND" } | { kind: "term"; field: Field };
const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
const TERM = new RegExp(String.raw`(-?)(?:(${TEXT}|[^\s:=<>!()"~]+)(<=|>=|!=|:|=|<|>|~))?(${TEXT}|[^\s()"]+)`, "y");

/** A condition that has no value yet. */
const OPEN = /^[^"].*[:=<>~]$/;
const SIGNS = /^[:=<>~]+$/;

/** Throws `QueryError`. */
export function parse(text: string): Group {
  const tokens = split(text);
  const node = either(tokens);
  if (tokens.length) throw new QueryError(`there is one ${tokens[0]!.kind === ")" ? "closing parenthesis" : tokens[0]!.kind} too many`);
  return node.kind === "group" ? node : { ...empty(), children: [node] };
}

function split(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (;;) {
    while (/\s/.test(text[at] ?? "")) at += 1;
    if (at >= text.length) return tokens;
    const sign = text[at]!;
    if (sign === "(" || sign === ")") {
      tokens.push({ kind: sign });
      at += 1;
      continue;
    }
    TERM.lastIndex = at;
    const matched = TERM.exec(text);
    if (!matched) throw new QueryError(`cannot be parsed: ${text.slice(at, at + 20)}`);
    at = TERM.lastIndex;
    const word = matched[0];
    if (word === "OR" || word === "AND") tokens.push({ kind: word });
    else tokens.push({ kind: "term", field: term(matched) });
  }
}

function term([, minus, column, sign, raw]: RegExpExecArray): Field {
  const value = unquoted(raw!);
  // Who is still typing a condition wants the list as it was, and not the names that contain `state:`.
  if (sign ? SIGNS.test(raw!) : OPEN.test(raw!)) throw new QueryError(`${column ?? ""}${sign ?? ""}${raw} needs a value`);
  const leafNode = sign ? leaf(unquoted(column!), sign, value, raw!) : field("name", "contains", value);
  return minus ? { ...leafNode, operator: OPPOSITE[leafNode.operator]! } : leafNode;
}

function leaf(written: string, sign: string, value: string, raw: string): Field {
  const column = ALIASES[written] ?? written;
  if (sign === "~") return field(column, "contains", value);
  if (sign !== ":") return field(column, sign, value);
  if (raw === NONE) return field(column, "isEmpty", "");
  if (raw === SOME) return field(column, "notEmpty", "");
  return field(column, PARTLY.has(column) ? "contains" : "=", value);
}

const unquoted = (text: string) => (text.startsWith('"') ? text.slice(1, -1).replace(/\\(.)/g, "$1") : text);

function either(tokens: Token[]): Node {
  const parts = [all(tokens)];
  while (tokens[0]?.kind === "OR") {
    tokens.shift();
    parts.push(all(tokens));
  }
  return parts.length === 1 ? parts[0]! : { kind: "group", conjunction: "or", children: parts };
}

function all(tokens: Token[]): Node {
  const parts: Node[] = [];
  for (;;) {
    const next = tokens[0];
    if (next?.kind === "AND") tokens.shift();
    else if (next?.kind === "term") {
      tokens.shift();
      parts.push(next.field);
    } else if (next?.kind === "(") {
      tokens.shift();
      parts.push(either(tokens));
      if (tokens.shift()?.kind !== ")") throw new QueryError("a parenthesis is not closed");
    } else break;
  }
  return parts.length === 1 ? parts[0]! : { kind: "group", conjunction: "and", children: parts };
}

/** The shortest text that `parse` reads as this tree; incomplete conditions are left out. */
export function format(node: Node): string {
  if (node.kind === "field") return textOf(node);
  return node.children
    .map((child) => {
      const text = format(child);
      return text && child.kind === "group" && child.children.length > 1 ? `(${text})` : text;
    })
    .filter(Boolean)
    .join(node.conjunction === "or" ? " OR " : " ");
}

const quoted = (text: string, plain: RegExp) => (plain.test(text) ? text : `"${text.replace(/["\\]/g, "\\$&")}"`);
const asValue = (text: string) => ([NONE, SOME, "OR", "AND"].includes(text) ? `"${text}"` : quoted(text, /^[^\s()":]+$/));

function textOf({ columnName, operator, value }: Field): string {
  const column = quoted(SHORT[columnName] ?? columnName, /^[^\s:=<>!()"~-][^\s:=<>!()"~]*$/);
  if (operator === "isEmpty") return `${column}:${NONE}`;
  if (operator === "notEmpty") return `${column}:${SOME}`;
  if (!value) return "";
  if (operator === "contains" || operator === "notContains") {
    return `${operator === "contains" ? "" : "-"}${column}${PARTLY.has(columnName) ? ":" : "~"}${asValue(value)}`;
  }
  if (operator === "=" && !PARTLY.has(columnName)) return `${column}:${asValue(value)}`;
  return `${column}${operator}${asValue(value)}`;
}

/** The filter in the form that the server expects. */
export const filterOf = (node: Group, showArchived: boolean) => JSON.stringify({ filterGroup: node, showArchived });
