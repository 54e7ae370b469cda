/** A search as a whole: what its trials came to, by their hyperparameters. */

import { type ReactNode, useEffect, useMemo, useRef } from "react";
import { useNavigate, useParams } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { ViewControls } from "../../charts/controls";
import { readNames, useLink, writeNames } from "../../charts/link";
import { type Curve, curveOf, MetricChart } from "../../charts/metrics";
import { isProfile, type Name } from "../../charts/names";
import { type Axis, axisOf, type Brush, fits, placeOf, readBrushes, writeBrushes } from "../../charts/search/axes";
import { ramp } from "../../charts/search/canvas";
import { Dots } from "../../charts/search/dots";
import { JudgeControls, useJudge, useValues } from "../../charts/search/judge";
import { Pairs } from "../../charts/search/pairs";
import { AxisControls, Parallel } from "../../charts/search/parallel";
import { type Ending, hyperparameters, looksSame, ranks, type Row, toRows } from "../../charts/search/rows";
import { Distribution, History, Importances } from "../../charts/search/summary";
import { Visible } from "../../charts/visible";
import { Card, Empty } from "../../parts/basics";
import { TrialTable } from "./trials";

const VIEWS: [string, string][] = [
  ["curves", "Learning curves"],
  ["parallel", "Parallel coordinates"],
  ["scatter", "Scatter"],
  ["pairs", "Heat map of pairs"],
  ["importance", "Importance"],
  ["history", "Best so far"],
  ["distribution", "Distribution"],
  ["table", "Trials"],
];
/** Names of the views in addresses of before. */
const FORMER: Record<string, string> = {
  "learning-curve": "curves",
  "parallel-coordinates": "parallel",
  "scatter-plots": "scatter",
  "heat-map": "pairs",
};
const viewOf = (text: string) => FORMER[text.replace(/^hp-/, "")] ?? text;

interface Props {
  one: Experiment;
  trials: Trial[];
  names: Name[];
  endings: Map<number, Ending>;
  topics: string[];
}

export function Hyperparameters({ one, trials, names, endings, topics }: Props) {
  const judge = useJudge(one);
  const values = useValues(trials, judge, topics);
  const all = useSameLooking(useMemo(() => toRows(trials, values, endings, judge.smaller), [trials, values, endings, judge.smaller]));
  const rows = useMemo(() => (judge.top ? all.slice(0, judge.top) : all), [all, judge.top]);
  useScroll();
  return (
    <>
      <JudgeControls one={one} names={names} total={all.length} />
      {rows.length ? (
        <Views one={one} rows={rows} trials={trials} names={names} topics={topics} />
      ) : (
        <Empty>
          No trial has reported {judge.name}
          {judge.batches === null ? "" : ` at ${judge.batches} batches`} yet.
        </Empty>
      )}
    </>
  );
}

/** The former rows as long as nothing of them that is drawn has changed: trials that run change all the time. */
function useSameLooking(rows: Row[]): Row[] {
  const held = useRef(rows);
  if (held.current !== rows && !looksSame(held.current, rows)) held.current = rows;
  return held.current;
}

/** The old address of a view, and `v` in ours, lead to its part of the page. */
function useScroll() {
  const former = useParams().view;
  const { params } = useLink();
  const wanted = params.get("v") ?? former;
  useEffect(() => {
    if (wanted) document.getElementById(viewOf(wanted))?.scrollIntoView();
  }, [wanted]);
}

function Views({ one, rows, trials, names, topics }: { one: Experiment; rows: Row[]; trials: Trial[]; names: Name[]; topics: string[] }) {
  const { params, set } = useLink();
  const judge = useJudge(one);
  const navigate = useNavigate();
  const open = (row: Row) => navigate(`/experiments/${one.id}/trials/${row.trial.id}/overview`);
  const found = useAxes(rows, judge.name, judge.scaling);
  const brushes = useMemo(() => readBrushes(params.get("f")), [params]);
  const chosen = useMemo(() => rows.filter((row) => fits(row, brushes, found.byName)), [rows, brushes, found.byName]);
  const byRank = params.get("c") === "rank";
  const share = useShare(rows, found.metric, judge.smaller, byRank);
  const tint = useMemo(() => (row: Row) => ramp(share(row)), [share]);
  const brush = (next: Brush[]) => set({ f: writeBrushes(next) });
  const pair: [string, string] = [params.get("px") ?? found.shown[0]?.name ?? "", params.get("py") ?? found.shown[1]?.name ?? ""];
  const curves = useMemo(() => chosen.map((row) => curveOf(row.trial, { end: row.ending })), [chosen]);
  const listed = useMemo(() => {
    const fresh = new Map(trials.map((trial) => [trial.id, trial]));
    return chosen.map((row) => fresh.get(row.trial.id) ?? row.trial);
  }, [chosen, trials]);
  return (
    <>
      <nav className="tabs" aria-label="Views">
        {VIEWS.map(([id, name]) => (
          <button
            key={id}
            type="button"
            className="link"
            onClick={() => {
              set({ v: id });
              document.getElementById(id)?.scrollIntoView();
            }}
          >
            {name}
          </button>
        ))}
        <span className="soft" role="status">
          {chosen.length === rows.length ? `${rows.length} trials` : `${chosen.length} of ${rows.length} trials chosen`}{" "}
          {brushes.length > 0 && (
            <button type="button" className="link" onClick={() => brush([])}>
              choose all
            </button>
          )}
        </span>
      </nav>
      <Curves trials={curves} judge={judge} topics={topics} names={names} />
      <View id="parallel" note="Drag along an axis to choose trials, drag its name to move it.">
        <AxisControls
          all={found.names}
          hidden={found.hidden}
          axes={found.axes}
          brushes={brushes}
          onHide={found.hide}
          onMove={found.move}
          onBrush={brush}
        />
        <Parallel
          rows={rows}
          chosen={chosen}
          axes={found.axes}
          brushes={brushes}
          onBrush={brush}
          onMove={found.move}
          tint={share}
          onOpen={open}
        />
        <Key />
      </View>
      <View id="scatter">
        <div className="tiles">
          {found.shown.map((axis) => (
            <Visible key={axis.name} name={axis.name} height={240}>
              {() => <Dots name={`${judge.name} over ${axis.name}`} rows={chosen} x={axis} y={found.metric} tint={tint} onOpen={open} />}
            </Visible>
          ))}
        </div>
      </View>
      {found.shown.length > 1 && (
        <View id="pairs">
          <div className="controls">
            <Choice name="x" value={pair[0]} of={found.shown} onChange={(px) => set({ px })} />
            <Choice name="y" value={pair[1]} of={found.shown} onChange={(py) => set({ py })} />
            <label>
              colour
              <select value={byRank ? "rank" : ""} onChange={(event) => set({ c: event.target.value })}>
                <option value="">{judge.name}</option>
                <option value="rank">rank</option>
              </select>
            </label>
            <label>
              <input type="checkbox" checked={params.get("k") === "1"} onChange={(event) => set({ k: event.target.checked ? "1" : "" })} />
              contour
            </label>
          </div>
          <Visible name="pairs" height={360} stays>
            {() => (
              <Pairs
                rows={chosen}
                axes={found.shown}
                pair={pair}
                contour={params.get("k") === "1"}
                tint={share}
                onPair={([px, py]) => set({ px, py })}
                onOpen={open}
              />
            )}
          </Visible>
          <Key />
        </View>
      )}
      <View id="importance">
        <Visible name="importance" height={160} stays>
          {() => <Importances rows={chosen} axes={found.shown} shareOf={share} />}
        </Visible>
      </View>
      <View id="history">
        <History
          rows={chosen}
          metric={found.metric}
          smaller={judge.smaller}
          start={Date.parse(one.startTime) / 1000}
          tint={tint}
          onOpen={open}
        />
      </View>
      <View id="distribution">
        <Distribution rows={chosen} name={judge.name} />
      </View>
      <View id="table">
        <TrialTable one={one} trials={listed} />
      </View>
    </>
  );
}

const TITLES = new Map(VIEWS);
const View = ({ id, note, children }: { id: string; note?: string; children: ReactNode }) => (
  <div id={id}>
    <Card title={TITLES.get(id)} more={note && <span className="soft">{note}</span>}>
      {children}
    </Card>
  </div>
);

const Key = () => (
  <p className="soft">
    <span className="swatch" style={{ background: ramp(0) }} /> best <span className="swatch" style={{ background: ramp(1) }} /> worst ·
    completed: full line, disk · stopped by the search: dashes, ring · failed: dots, cross
  </p>
);

const Choice = ({ name, value, of, onChange }: { name: string; value: string; of: Axis[]; onChange: (name: string) => void }) => (
  <label>
    {name}
    <select value={value} onChange={(event) => onChange(event.target.value)}>
      {of.map((axis) => (
        <option key={axis.name}>{axis.name}</option>
      ))}
    </select>
  </label>
);

function Curves({
  trials,
  judge,
  topics,
  names,
}: {
  trials: Curve[];
  judge: { group: string; name: string };
  topics: string[];
  names: Name[];
}) {
  return (
    <View id="curves">
      <ViewControls names={[...new Set(names.filter((one) => !isProfile(one.group)).map((one) => one.name))]} />
      <MetricChart trials={trials} metric={judge.name} group={judge.group} topics={topics} height={320} />
    </View>
  );
}

/** Axes of all hyperparameters that differ, and of the metric: which are shown, in which order. Both lie in the address. */
function useAxes(rows: Row[], metricName: string, scaling: "" | "linear" | "log") {
  const { params, set } = useLink();
  const known = useMemo(() => hyperparameters(rows), [rows]);
  const metric = useMemo(() => {
    const taken = known.some((one) => one.name === metricName);
    return axisOf(taken ? `metric ${metricName}` : metricName, rows, (row) => row.value, scaling);
  }, [known, rows, metricName, scaling]);
  const [hide, show, order] = ["h", "i", "ao"].map((key) => params.get(key) ?? "");
  const made = useMemo(() => {
    const [asked, wanted] = [new Set(readNames(hide)), new Set(readNames(show))];
    const hidden = new Set(known.filter((one) => asked.has(one.name) || (!one.varies && !wanted.has(one.name))).map((one) => one.name));
    const names = known.map((one) => one.name);
    const places = readNames(order);
    const place = (name: string) => (places.includes(name) ? places.indexOf(name) : places.length + names.indexOf(name));
    const shown = names
      .filter((name) => !hidden.has(name))
      .sort((a, b) => place(a) - place(b))
      .map((name) => axisOf(name, rows, (row) => row.hp[name], scaling));
    const axes = [...shown];
    const at = places.indexOf(metric.name);
    axes.splice(at < 0 ? axes.length : Math.min(at, axes.length), 0, metric);
    return { names, hidden, shown, axes, byName: new Map(axes.map((axis) => [axis.name, axis])), asked, wanted };
  }, [known, rows, metric, scaling, hide, show, order]);
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
    move: (name: string, to: number) => {
      const next = made.axes.map((axis) => axis.name).filter((one) => one !== name);
      next.splice(to, 0, name);
      set({ ao: writeNames(next) });
    },
  };
}

/** How good a trial is, 0 the best to 1 the worst: by value, or by its place among all. */
function useShare(rows: Row[], metric: Axis, smaller: boolean, byRank: boolean): (row: Row) => number {
  return useMemo(() => {
    const places = byRank ? ranks(rows) : null;
    return (row: Row) => {
      if (places) return places.get(row.trial.id) ?? 1;
      const found = placeOf(metric, row) ?? 1;
      return smaller ? found : 1 - found;
    };
  }, [rows, metric, smaller, byRank]);
}
