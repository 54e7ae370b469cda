import { useMemo } from "react";
import { useNavigate } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { readNames, useLink, writeNames } from "../../charts/link";
import { type Axis, axisOf, fits, placeOf, readBrushes, writeBrushes } from "../../charts/search/axes";
import { Parallel } from "../../charts/search/parallel";
import { AxisControls } from "../../charts/search/ranges";
import { bestOf, hyperparameters, type Row, toRows } from "../../charts/search/rows";
import { Card } from "../../ui/card";
import { Popover } from "../../ui/menu";
import { Empty } from "../../ui/status";

interface Compared {
  experiments: Experiment[];
  trials: Trial[];
}

/**
 * Parallel coordinates across different configurations: one axis for the experiment, one for each hyperparameter of any
 * of them, and the metric.
 */
export function Coordinates({ experiments, trials }: Compared) {
  const { params, set } = useLink();
  const navigate = useNavigate();
  const [first] = experiments;
  const metric = first?.searcherMetric ?? "";
  const smaller = first?.config.searcher.smaller_is_better !== false;
  const rows = useMemo(
    () => toRows(trials, new Map(trials.map((other) => [other.id, bestOf(other, metric)])), new Map(), smaller),
    [trials, metric, smaller],
  );
  const hidden = useMemo(() => new Set(readNames(params.get("h"))), [params]);
  const order = useMemo(() => readNames(params.get("ao")), [params]);
  const all = useMemo(() => allAxes(rows, metric), [rows, metric]);
  const axes = useMemo(() => {
    const place = (axis: Axis) => (order.includes(axis.name) ? order.indexOf(axis.name) : order.length + all.indexOf(axis));
    return all.filter((axis) => !hidden.has(axis.name)).sort((a, b) => place(a) - place(b));
  }, [all, hidden, order]);
  const value = all.at(-1)!;
  const brushes = useMemo(() => readBrushes(params.get("f")), [params]);
  const chosen = useMemo(
    () => rows.filter((row) => fits(row, brushes, new Map(axes.map((axis) => [axis.name, axis])))),
    [rows, brushes, axes],
  );
  const tint = useMemo(() => (row: Row) => (smaller ? (placeOf(value, row) ?? 1) : 1 - (placeOf(value, row) ?? 0)), [value, smaller]);
  const shared = {
    axes,
    brushes,
    onBrush: (next: typeof brushes) => set({ f: writeBrushes(next) }),
    onMove: (name: string, to: number) => {
      const next = axes.map((axis) => axis.name).filter((other) => other !== name);
      next.splice(to, 0, name);
      set({ ao: writeNames(next) });
    },
  };
  if (!rows.length)
    return (
      <Card>
        <Empty title={`None of these has reported ${metric} yet`}>This is the metric that the first experiment searches for.</Empty>
      </Card>
    );
  return (
    <Card
      title="Parallel coordinates"
      flush
      more={
        <Popover label="Axes and ranges" text="Axes and ranges" small wide>
          <AxisControls
            {...shared}
            all={all.map((axis) => axis.name)}
            hidden={hidden}
            onHide={(name, away) => set({ h: writeNames(away ? [...hidden, name] : [...hidden].filter((other) => other !== name)) })}
          />
        </Popover>
      }
    >
      <Parallel
        {...shared}
        rows={rows}
        chosen={chosen}
        tint={tint}
        onOpen={(row) => navigate(`/experiments/${row.trial.experimentId}/trials/${row.trial.id}/overview`)}
      />
    </Card>
  );
}

function allAxes(rows: Row[], metric: string): Axis[] {
  const names = hyperparameters(rows).filter((other) => other.varies);
  return [
    axisOf("experiment", rows, (row) => String(row.trial.experimentId)),
    ...names.map(({ name }) => axisOf(name, rows, (row) => row.hp[name])),
    axisOf(metric, rows, (row) => row.value),
  ];
}
