/** Several experiments and trials beside each other; which ones lies in the address: `?e=1,2&t=7`. */

import { useQueries } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { Link, useNavigate } from "react-router";

import { question, useAgain } from "../api/data";
import type { Experiment, Trial } from "../api/types";
import { type Difference, differences } from "../charts/differences";
import { readNames, useLink, writeNames } from "../charts/link";
import { type Curve, curveOf, Metrics } from "../charts/metrics";
import { useNames } from "../charts/names";
import { type Axis, axisOf, fits, placeOf, readBrushes, writeBrushes } from "../charts/search/axes";
import { AxisControls, Parallel } from "../charts/search/parallel";
import { bestOf, hyperparameters, type Row, toRows } from "../charts/search/rows";
import { Card, Empty, Failure, State, Time, TrialLink } from "../parts/basics";
import { colour, duration, number } from "../parts/format";

const REST_MS = 1000;
/** Trials of each experiment, the best, unless more are asked for. */
const EACH = 3;
const VIEWS: [string, string][] = [
  ["", "Metrics"],
  ["parallel", "Parallel coordinates"],
  ["details", "Details"],
];

const ids = (text: string | null) => [
  ...new Set(
    (text ?? "")
      .split(",")
      .map(Number)
      .filter((id) => Number.isInteger(id) && id > 0),
  ),
];

interface Found {
  experiments: Experiment[];
  trials: Trial[];
  errors: unknown[];
  pending: boolean;
}

/** Experiments and trials that are compared, trials of one experiment together. */
function useCompared(experiments: number[], trials: number[], each: number): Found {
  const best = (id: number) => `experiments/${id}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&lean=true&limit=${each}`;
  const asked = useQueries({ queries: trials.map((id) => question<{ trial: Trial }>(`trials/${id}`)) });
  const listed = useQueries({ queries: experiments.map((id) => question<{ trials: Trial[] }>(best(id))) });
  const trialsFound = [...asked.map((one) => one.data && [one.data.trial]), ...listed.map((one) => one.data?.trials)];
  const found = new Map(trialsFound.flatMap((some) => some ?? []).map((trial) => [trial.id, trial]));
  const all = [...new Set([...experiments, ...[...found.values()].map((one) => one.experimentId)])];
  const above = useQueries({ queries: all.map((id) => question<{ experiment: Experiment }>(`experiments/${id}`)) });
  const topics = all.flatMap((id) => [`experiment.${id}`, `experiment.${id}.series`]);
  const paths = [...trials.map((id) => `trials/${id}`), ...experiments.map(best), ...all.map((id) => `experiments/${id}`)];
  useAgain(
    topics,
    paths.map((path) => [path]),
    REST_MS,
  );
  const every = [...asked, ...listed, ...above];
  return {
    experiments: above.flatMap((one) => (one.data ? [one.data.experiment] : [])),
    trials: [...found.values()],
    errors: every.flatMap((one) => (one.error && !one.data ? [one.error] : [])),
    pending: every.some((one) => one.isPending && !one.error),
  };
}

export function Compare() {
  const { params, set } = useLink();
  const [experiments, trials] = [ids(params.get("e")), ids(params.get("t"))];
  const each = Number(params.get("n")) || EACH;
  const view = params.get("v") ?? "";
  const found = useCompared(experiments, trials, each);
  if (!experiments.length && !trials.length)
    return (
      <>
        <h1>Compare</h1>
        <Empty>
          Choose experiments in the <Link to="/experiments">list</Link>, or trials of an experiment, and compare them here.
        </Empty>
      </>
    );
  return (
    <>
      <h1>Compare</h1>
      {found.errors.map((error, at) => (
        <Failure key={at} error={error} />
      ))}
      <nav className="tabs" aria-label="Views">
        {VIEWS.map(([id, name]) => (
          <button key={id} type="button" className="link" aria-current={view === id} onClick={() => set({ v: id })}>
            {name}
          </button>
        ))}
        {experiments.length > 0 && (
          <label className="soft">
            best trials of each experiment{" "}
            <input
              type="number"
              min={1}
              max={1000}
              value={each}
              onChange={(event) => set({ n: event.target.value === String(EACH) ? "" : event.target.value })}
            />
          </label>
        )}
      </nav>
      {found.pending ? <div className="skeleton" role="status" aria-label="Loading" /> : <View view={view} found={found} />}
    </>
  );
}

function View({ view, found: { experiments, trials } }: { view: string; found: Found }) {
  if (!trials.length) return <Empty>None of these has a trial yet.</Empty>;
  if (view === "details") return <Details experiments={experiments} trials={trials} />;
  if (view === "parallel") return <Coordinates experiments={experiments} trials={trials} />;
  return <Curves experiments={experiments} trials={trials} />;
}

interface Compared {
  experiments: Experiment[];
  trials: Trial[];
}

function Curves({ experiments, trials }: Compared) {
  const made = trials.map((trial): Curve => curveOf(trial, { label: `${trial.experimentId} / ${trial.id}` }));
  const key = JSON.stringify(made);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same for as long as they say the same
  const curves = useMemo(() => made, [key]);
  const of = experiments.map((one) => one.id);
  const topics = of.map((id) => `experiment.${id}.series`);
  const names = useNames(of, topics);
  return (
    <>
      <Legend experiments={experiments} trials={trials} />
      <Metrics trials={curves} names={names.data ?? []} searched={experiments[0]?.searcherMetric ?? ""} topics={topics} />
    </>
  );
}

const Legend = ({ experiments, trials }: Compared) => (
  <ul className="legend compared" aria-label="Compared">
    {experiments.map((one) => (
      <li key={one.id}>
        <Link to={`/experiments/${one.id}/overview`}>
          {one.id} {one.name}
        </Link>
        :
        {trials
          .filter((trial) => trial.experimentId === one.id)
          .map((trial) => (
            <span key={trial.id}>
              {" "}
              <span className="dot" style={{ background: colour(trial.id) }} aria-hidden /> <TrialLink experiment={one.id} id={trial.id} />
            </span>
          ))}
      </li>
    ))}
  </ul>
);

/** Over experiments of different configurations: an axis for the experiment, one for each hyperparameter of any, and the metric. */
function Coordinates({ experiments, trials }: Compared) {
  const { params, set } = useLink();
  const navigate = useNavigate();
  const [first] = experiments;
  const metric = first?.searcherMetric ?? "";
  const smaller = first?.config.searcher.smaller_is_better !== false;
  const rows = useMemo(
    () => toRows(trials, new Map(trials.map((one) => [one.id, bestOf(one, metric)])), new Map(), smaller),
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
      const next = axes.map((axis) => axis.name).filter((one) => one !== name);
      next.splice(to, 0, name);
      set({ ao: writeNames(next) });
    },
  };
  if (!rows.length) return <Empty>None of these has reported {metric} yet, the searcher's metric of the first.</Empty>;
  return (
    <Card title="Parallel coordinates">
      <AxisControls
        {...shared}
        all={all.map((axis) => axis.name)}
        hidden={hidden}
        onHide={(name, away) => set({ h: writeNames(away ? [...hidden, name] : [...hidden].filter((one) => one !== name)) })}
      />
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
  const names = hyperparameters(rows).filter((one) => one.varies);
  return [
    axisOf("experiment", rows, (row) => String(row.trial.experimentId)),
    ...names.map(({ name }) => axisOf(name, rows, (row) => row.hp[name])),
    axisOf(metric, rows, (row) => row.value),
  ];
}

/** A column for each trial; rows in which they differ are marked, and come alone if asked. */
function Details({ experiments, trials }: Compared) {
  const { params, set } = useLink();
  const only = params.get("d") === "1";
  const rows = useMemo(() => differences(experiments, trials), [experiments, trials]);
  const shown = only ? rows.filter((row) => row.differs) : rows;
  return (
    <Card
      title="Details"
      more={
        <label className="soft">
          <input type="checkbox" checked={only} onChange={(event) => set({ d: event.target.checked ? "1" : "" })} /> only what differs (
          {rows.filter((row) => row.differs).length} of {rows.length})
        </label>
      }
    >
      <div className="scroll" tabIndex={0}>
        <table aria-label="Details">
          <thead>
            <tr>
              <th scope="col">
                <span className="hidden">Property</span>
              </th>
              {trials.map((trial) => (
                <th key={trial.id} scope="col">
                  <span className="dot" style={{ background: colour(trial.id) }} aria-hidden /> {trial.experimentId} /{" "}
                  <TrialLink experiment={trial.experimentId} id={trial.id} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Plain name="State" of={trials} cell={(trial) => <State state={trial.state} why={trial.stateReason} />} />
            <Plain name="Started" of={trials} cell={(trial) => <Time at={trial.startTime} />} />
            <Plain name="Ran" of={trials} cell={(trial) => duration(trial.wallClockTime)} />
            {shown.map((row) => (
              <Line key={row.name} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

const Plain = ({ name, of, cell }: { name: string; of: Trial[]; cell: (trial: Trial) => ReactNode }) => (
  <tr>
    <th scope="row">{name}</th>
    {of.map((trial) => (
      <td key={trial.id}>{cell(trial)}</td>
    ))}
  </tr>
);

const Line = ({ row }: { row: Difference }) => (
  <tr className={row.differs ? "differs" : undefined}>
    <th scope="row">
      {row.name}
      {row.differs && <span className="hidden"> (differs)</span>}
    </th>
    {row.values.map((value, at) => (
      <td key={at} title={typeof value === "string" ? value : JSON.stringify(value)}>
        {typeof value === "number"
          ? number(value, 6)
          : typeof value === "string"
            ? value
            : value === undefined
              ? ""
              : JSON.stringify(value)}
      </td>
    ))}
  </tr>
);
