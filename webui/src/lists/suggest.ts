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
  label: string;
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
export function suggestions(text: string, vocabulary: Known): Suggestion[] {
  const [, before, word] = /^(.*?[\s(-]?)([^\s(]*)$/s.exec(text)!;
  const [, column, sign, begun] = /^([^:=<>~!]+)([:=<>~!]+)(.*)$/.exec(word!) ?? [];
  const fits = (name: string, part: string) => name.toLowerCase().includes(part.toLowerCase());
  if (column !== undefined)
    return values(column, vocabulary)
      .filter((value) => fits(value, begun!.replace(/^"/, "")) && value !== begun)
      .slice(0, MOST)
      .map((value) => ({ label: `${column}${sign}${quoted(value)}`, text: `${before}${column}${sign}${quoted(value)} ` }));
  if (!word) return [];
  const names = [...new Set([...Object.keys(ALIASES), ...vocabulary.columns])];
  return names
    .filter((name) => fits(name, word) && name !== word)
    .toSorted((a, b) => Number(!a.startsWith(word)) - Number(!b.startsWith(word)))
    .slice(0, MOST)
    .map((name) => ({ label: `${name}:`, text: `${before}${name}:` }));
}

/** Unknown words of the query, with the nearest known ones; empty if there are none. */
export function problem(text: string, vocabulary: Known): string {
  try {
    return unknown(parse(text), vocabulary);
  } catch (error) {
    if (error instanceof QueryError) return error.message;
    throw error;
  }
}

const METRIC = /^(metric|hp|training|validation|[\w-]+)\./;

function unknown(node: Node, vocabulary: Known): string {
  if (node.kind === "group") {
    for (const child of node.children) {
      const fault = unknown(child, vocabulary);
      if (fault) return fault;
    }
    return "";
  }
  const { columnName, value } = node;
  const hint = (near: string[]) => (near[0] ? ` Did you mean ${near[0]}?` : "");
  if (
    vocabulary.columns.length &&
    !vocabulary.columns.includes(columnName) &&
    !Object.values(ALIASES).includes(columnName) &&
    !METRIC.test(columnName)
  )
    return `there is no column '${columnName}'.${hint(nearest(columnName, [...Object.keys(ALIASES), ...vocabulary.columns], 1))}`;
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
