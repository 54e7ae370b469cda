/** Completions of a query, and its errors. */

import { nearest } from "../shell/nearest";
import { ALIASES, format, type Node, parse, QueryError } from "./query";

export const STATES = ["ACTIVE", "RUNNING", "QUEUED", "PAUSED", "COMPLETED", "CANCELED", "ERROR"];

/** States that last only a moment: valid in a query, but not suggested. */
const OTHER_STATES = /^(PULLING|STARTING|STOPPING_\w+|DELETING|DELETED|DELETE_FAILED)$/i;

export interface Known {
  columns: string[];
  tags: string[];
  users: string[];
  projects: string[];
}
export interface Suggestion {
  /** The text to show. */
  said: string;
  /** The whole query with the completion applied. */
  text: string;
}

const MOST = 12;
const quoted = (value: string) => (/^[^\s()":]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`);

function values(column: string, { tags, users, projects }: Known): string[] {
  switch (ALIASES[column] ?? column) {
    case "state":
      return STATES;
    case "tags":
      return tags;
    case "user":
      return users;
    case "projectId":
      return projects;
    default:
      return [];
  }
}

/** Completions of the last word: column names, or values of the column before it. */
export function suggestions(text: string, known: Known): Suggestion[] {
  const [, before, word] = /^(.*?[\s(-]?)([^\s(]*)$/s.exec(text)!;
  const [, column, sign, begun] = /^([^:=<>~!]+)([:=<>~!]+)(.*)$/.exec(word!) ?? [];
  const fits = (name: string, part: string) => name.toLowerCase().includes(part.toLowerCase());
  if (column !== undefined)
    return values(column, known)
      .filter((one) => fits(one, begun!.replace(/^"/, "")) && one !== begun)
      .slice(0, MOST)
      .map((one) => ({ said: `${column}${sign}${quoted(one)}`, text: `${before}${column}${sign}${quoted(one)} ` }));
  if (!word) return [];
  const names = [...new Set([...Object.keys(ALIASES), ...known.columns])];
  return names
    .filter((one) => fits(one, word) && one !== word)
    .toSorted((a, b) => Number(!a.startsWith(word)) - Number(!b.startsWith(word)))
    .slice(0, MOST)
    .map((one) => ({ said: `${one}:`, text: `${before}${one}:` }));
}

/** Unknown words of the query, with the nearest known ones; empty if there are none. */
export function problem(text: string, known: Known): string {
  try {
    return unknown(parse(text), known);
  } catch (error) {
    if (error instanceof QueryError) return error.message;
    throw error;
  }
}

const METRIC = /^(metric|hp|training|validation|[\w-]+)\./;

function unknown(node: Node, known: Known): string {
  if (node.kind === "group") {
    for (const child of node.children) {
      const found = unknown(child, known);
      if (found) return found;
    }
    return "";
  }
  const { columnName, value } = node;
  const hint = (near: string[]) => (near[0] ? ` Did you mean ${near[0]}?` : "");
  if (
    known.columns.length &&
    !known.columns.includes(columnName) &&
    !Object.values(ALIASES).includes(columnName) &&
    !METRIC.test(columnName)
  )
    return `there is no column '${columnName}'.${hint(nearest(columnName, [...Object.keys(ALIASES), ...known.columns], 1))}`;
  if (columnName === "state" && value && !STATES.includes(value.toUpperCase()) && !OTHER_STATES.test(value))
    return `there is no state ${value}.${hint(nearest(value, STATES, 1))}`;
  return "";
}

/** The conditions of a query, each as text. */
export function conditions(text: string): string[] {
  try {
    const tree = parse(text);
    return tree.conjunction === "or" && tree.children.length > 1 ? [format(tree)] : tree.children.map(format).filter(Boolean);
  } catch {
    return [];
  }
}

/** The query without one of its conditions. */
export function without(text: string, at: number): string {
  const tree = parse(text);
  if (tree.conjunction === "or") return "";
  return format({ ...tree, children: tree.children.filter((child, place) => place !== at || !format(child)) });
}
