/** What the plots of a search share: their axes, and how good a trial is. */

import { useMemo } from "react";

import { readNames, useLink, writeNames } from "../../../charts/link";
import { type Axis, axisOf, type Brush, placeOf, valueAt } from "../../../charts/search/axes";
import type { useJudge } from "../../../charts/search/judge";
import { hyperparameters, ranks, type Row } from "../../../charts/search/rows";
import type { Ranged } from "../../../charts/search/scales";
import type { Experiment } from "../../../api/types";
import { number } from "../../../parts/format";

export interface Shown {
  experiment: Experiment;
  rows: Row[];
  chosen: Row[];
  axes: ReturnType<typeof useAxes>;
  share: (row: Row) => number;
  tint: (row: Row) => string;
  open: (row: Row) => void;
  judge: ReturnType<typeof useJudge>;
  byRank: boolean;
}

/** `lr ≥ 0.001`, `act is relu` */
export function brushWords(brush: Brush, axis: Axis | undefined): string {
  if (!axis) return brush.name;
  if (axis.kinds) {
    const kinds = axis.kinds.slice(Math.ceil(brush.from), Math.floor(brush.to) + 1).map((kind) => kind.replace(/^"|"$/g, ""));
    return `${brush.name} is ${kinds.join(" or ") || "none"}`;
  }
  const [low, high] = [valueAt(axis, 0.002), valueAt(axis, 0.998)];
  if (brush.from <= low) return `${brush.name} ≤ ${number(brush.to, 3)}`;
  if (brush.to >= high) return `${brush.name} ≥ ${number(brush.from, 3)}`;
  return `${brush.name} ${number(brush.from, 3)} to ${number(brush.to, 3)}`;
}

/** Axes of the metric and of all hyperparameters that differ. The address holds which are shown, and their order. */
export function useAxes(rows: Row[], metricName: string, scaling: "" | "linear" | "log", ranged: Map<string, Ranged>) {
  const { params, set } = useLink();
  const parameters = useMemo(() => hyperparameters(rows), [rows]);
  const metric = useMemo(() => {
    const taken = parameters.some((parameter) => parameter.name === metricName);
    return axisOf(taken ? `metric ${metricName}` : metricName, rows, (row) => row.value, scaling || "linear");
  }, [parameters, rows, metricName, scaling]);
  const [hide, show, order] = ["h", "i", "ao"].map((key) => params.get(key) ?? "");
  const made = useMemo(() => {
    const [asked, wanted] = [new Set(readNames(hide)), new Set(readNames(show))];
    const hidden = new Set(
      parameters
        .filter((parameter) => asked.has(parameter.name) || (!parameter.varies && !wanted.has(parameter.name)))
        .map((parameter) => parameter.name),
    );
    const names = parameters.map((parameter) => parameter.name);
    const places = readNames(order);
    const place = (name: string) => (places.includes(name) ? places.indexOf(name) : places.length + names.indexOf(name));
    const shown = names
      .filter((name) => !hidden.has(name))
      .sort((a, b) => place(a) - place(b))
      .map((name) => axisOf(name, rows, (row) => row.hp[name], scaling, ranged.get(name)));
    const axes = [...shown];
    const at = places.indexOf(metric.name);
    axes.splice(at < 0 ? axes.length : Math.min(at, axes.length), 0, metric);
    return { names, hidden, shown, axes, byName: new Map(axes.map((axis) => [axis.name, axis])), asked, wanted };
  }, [parameters, rows, metric, scaling, hide, show, order, ranged]);
  return {
    ...made,
    metric,
    hide: (name: string, away: boolean) => {
      const [asked, wanted] = [new Set(made.asked), new Set(made.wanted)];
      const [to, from] = away ? [asked, wanted] : [wanted, asked];
      to.add(name);
      from.delete(name);
      set({ h: writeNames(asked), i: writeNames(wanted) });
    },
    /** Hyperparameters in this order; the metric comes after them. */
    order: (names: string[]) => set({ ao: writeNames(names) }),
    move: (name: string, to: number) => {
      const next = made.axes.map((axis) => axis.name).filter((other) => other !== name);
      next.splice(to, 0, name);
      set({ ao: writeNames(next) });
    },
  };
}

/** How good a trial is, 0 for the best to 1 for the worst: by value, or by rank. */
export function useShare(rows: Row[], metric: Axis, smaller: boolean, byRank: boolean): (row: Row) => number {
  return useMemo(() => {
    const places = byRank ? ranks(rows) : null;
    return (row: Row) => {
      if (places) return places.get(row.trial.id) ?? 1;
      const place = placeOf(metric, row) ?? 1;
      return smaller ? place : 1 - place;
    };
  }, [rows, metric, smaller, byRank]);
}
