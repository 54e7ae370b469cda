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
  const byName = new Map<string, { name: string; groups: Set<string>; profile: boolean }>();
  for (const { name, group } of names) {
    if (AXES.has(name)) continue;
    const profile = isProfile(group);
    const key = `${profile} ${name}`;
    if (!byName.has(key)) byName.set(key, { name, groups: new Set(), profile });
    byName.get(key)!.groups.add(group);
  }
  return [...byName.values()].map((chart) => ({ ...chart, groups: [...chart.groups].sort() }));
}

const BOTH = ["training", "validation"];
/** The searcher's metric first, then metrics in both training and validation, then by name. */
export function inOrder(charts: Chart[], searched: string): Chart[] {
  const weight = (chart: Chart) => (chart.name === searched ? 0 : BOTH.every((group) => chart.groups.includes(group)) ? 1 : 2);
  return [...charts].sort((a, b) => weight(a) - weight(b) || a.name.localeCompare(b.name, "en", { numeric: true }));
}

/** A number at the end of the prefix is ignored: `layer_07/norm` belongs to `layer`. */
const prefixOf = (chart: Chart) => (chart.profile ? "system" : (/^([^/.]+?)[_-]?\d*[/.]./.exec(chart.name)?.[1] ?? ""));

/** A prefix with a single metric does not make a section. */
const LEAST = 2;

/** Metrics without a prefix first, then sections by name; machine metrics last. */
export function sectionsOf(charts: Chart[], searched: string): Section[] {
  const ordered = inOrder(charts, searched);
  const counts = new Map<string, number>();
  for (const chart of ordered) counts.set(prefixOf(chart), (counts.get(prefixOf(chart)) ?? 0) + 1);
  const title = (chart: Chart) => {
    const prefix = prefixOf(chart);
    return prefix === "system" || counts.get(prefix)! >= LEAST ? prefix : "";
  };
  const byTitle = new Map<string, Chart[]>();
  for (const chart of ordered) byTitle.set(title(chart), [...(byTitle.get(title(chart)) ?? []), chart]);
  const weight = (title: string) => (title === "" ? 0 : title === "system" ? 2 : 1);
  return [...byTitle]
    .sort(([a], [b]) => weight(a) - weight(b) || a.localeCompare(b, "en", { numeric: true }))
    .map(([title, charts]) => ({ title, charts }));
}

/** Moves the pinned charts, in the order in which they were pinned, from their sections into one before all others. */
export function pinnedFirst(sections: Section[], pinned: string[]): Section[] {
  const byName = new Map(sections.flatMap((section) => section.charts).map((chart) => [chart.name, chart]));
  const mine = pinned.flatMap((name) => byName.get(name) ?? []);
  if (!mine.length) return sections;
  const rest = sections.map(({ title, charts }) => ({ title, charts: charts.filter((chart) => !pinned.includes(chart.name)) }));
  return [{ title: PINNED, charts: mine }, ...rest.filter((section) => section.charts.length)];
}
export const PINNED = "Pinned";

/** The charts that match: every word must occur in the name or the title, in any case. */
export function finding(charts: Chart[], words: string): Chart[] {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const textOf = (chart: Chart) => `${chart.name} ${titleOf(chart.name, chart.profile).text}`.toLowerCase();
  return charts.filter((chart) => parts.every((part) => textOf(chart).includes(part)));
}

const OPEN = 3;
/** The first three sections are open, and all are during a search, unless the user opened or closed them. */
export const isOpen = (at: number, chosen: boolean | undefined, searching: boolean) => chosen ?? (searching || at < OPEN);
