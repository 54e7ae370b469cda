/** Groups the charts of a page into sections, by the part of their names before the first `/` or `.`. */

import { isProfile, type Name } from "./names";
import { titleOf } from "./titles";

export interface Chart {
  name: string;
  /** The metric's groups: training, validation, what profilers report, and any name that scripts use. */
  groups: string[];
  /** A metric that the machine reported about itself. */
  profile: boolean;
}

export interface Section {
  /** Empty for metrics without a prefix. */
  title: string;
  charts: Chart[];
}

/** Names that serve as x axes rather than as charts. */
const AXES = new Set(["epoch", "epochs", "step", "steps", "batch", "batches", "time", "timestamp"]);

export const isAxis = (name: string) => AXES.has(name);

export function chartsOf(names: Name[]): Chart[] {
  const found = new Map<string, { name: string; groups: Set<string>; profile: boolean }>();
  for (const { name, group } of names) {
    if (AXES.has(name)) continue;
    const profile = isProfile(group);
    const key = `${profile} ${name}`;
    if (!found.has(key)) found.set(key, { name, groups: new Set(), profile });
    found.get(key)!.groups.add(group);
  }
  return [...found.values()].map((one) => ({ ...one, groups: [...one.groups].sort() }));
}

const BOTH = ["training", "validation"];
/** The searcher's metric first, then metrics in both training and validation, then by name. */
export function inOrder(charts: Chart[], searched: string): Chart[] {
  const weight = (one: Chart) => (one.name === searched ? 0 : BOTH.every((group) => one.groups.includes(group)) ? 1 : 2);
  return [...charts].sort((a, b) => weight(a) - weight(b) || a.name.localeCompare(b.name, "en", { numeric: true }));
}

/** A number at the end of the prefix is ignored: `layer_07/norm` belongs to `layer`. */
const prefixOf = (one: Chart) => (one.profile ? "system" : (/^([^/.]+?)[_-]?\d*[/.]./.exec(one.name)?.[1] ?? ""));

/** A prefix with a single metric does not make a section. */
const LEAST = 2;

/** Metrics without a prefix first, then sections by name; machine metrics last. */
export function sectionsOf(charts: Chart[], searched: string): Section[] {
  const ordered = inOrder(charts, searched);
  const counts = new Map<string, number>();
  for (const one of ordered) counts.set(prefixOf(one), (counts.get(prefixOf(one)) ?? 0) + 1);
  const title = (one: Chart) => {
    const prefix = prefixOf(one);
    return prefix === "system" || counts.get(prefix)! >= LEAST ? prefix : "";
  };
  const found = new Map<string, Chart[]>();
  for (const one of ordered) found.set(title(one), [...(found.get(title(one)) ?? []), one]);
  const weight = (one: string) => (one === "" ? 0 : one === "system" ? 2 : 1);
  return [...found]
    .sort(([a], [b]) => weight(a) - weight(b) || a.localeCompare(b, "en", { numeric: true }))
    .map(([title, charts]) => ({ title, charts }));
}

/** Moves the pinned charts, in the order in which they were pinned, from their sections into one before all others. */
export function pinnedFirst(sections: Section[], pinned: string[]): Section[] {
  const known = new Map(sections.flatMap((one) => one.charts).map((one) => [one.name, one]));
  const mine = pinned.flatMap((name) => known.get(name) ?? []);
  if (!mine.length) return sections;
  const rest = sections.map(({ title, charts }) => ({ title, charts: charts.filter((one) => !pinned.includes(one.name)) }));
  return [{ title: PINNED, charts: mine }, ...rest.filter((one) => one.charts.length)];
}
export const PINNED = "Pinned";

/** The charts that match: every word must occur in the name or the title, in any case. */
export function finding(charts: Chart[], words: string): Chart[] {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const textOf = (one: Chart) => `${one.name} ${titleOf(one.name, one.profile).text}`.toLowerCase();
  return charts.filter((one) => parts.every((part) => textOf(one).includes(part)));
}

const OPEN = 3;
/** The first three sections are open, and all are during a search, unless the user opened or closed them. */
export const isOpen = (at: number, said: boolean | undefined, searching: boolean) => said ?? (searching || at < OPEN);
