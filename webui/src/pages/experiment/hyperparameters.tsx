/** A search as a whole: the results of its trials over their hyperparameters. */

import { SlidersHorizontal } from "lucide-react";
import { useMemo, useRef } from "react";
import { useNavigate, useParams } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { useChosen } from "../../charts/chosen";
import { useLink } from "../../charts/link";
import { looksOf } from "../../charts/looks";
import { curveOf, MetricChart } from "../../charts/metric";
import { isProfile, type Name } from "../../charts/names";
import { ramp } from "../../charts/ramp";
import { type Brush, fits, readBrushes, writeBrushes } from "../../charts/search/axes";
import { JudgeControls, useJudge, useValues } from "../../charts/search/judge";
import { Pairs } from "../../charts/search/pairs";
import { AxisControls } from "../../charts/search/ranges";
import { type Ending, looksSame, type Row, toRows } from "../../charts/search/rows";
import { scalesOf } from "../../charts/search/scales";
import { Tools } from "../../charts/tools";
import { Segments } from "../../ui/button";
import { Card } from "../../ui/card";
import { Select } from "../../ui/field";
import { Popover } from "../../ui/menu";
import { Empty, Loading } from "../../ui/status";
import { Chip } from "../../ui/text";
import { useListed } from "./listed";
import { brushWords, type Shown, useAxes, useShare } from "./search/axes";
import { Key, Part } from "./search/part";
import { Whole } from "./search/whole";
import { TrialTable } from "./trials";
import { count, many } from "../../parts/format";

const VIEWS = [
  ["", "Overview"],
  ["curves", "Learning curves"],
  ["pairs", "Pairs"],
  ["table", "Table"],
] as const;
type ViewName = (typeof VIEWS)[number][0];

/** Current views for the names in old addresses. */
const FORMER: Record<string, ViewName> = {
  "learning-curve": "curves",
  "parallel-coordinates": "",
  "scatter-plots": "pairs",
  "heat-map": "pairs",
  scatter: "pairs",
};
export function viewOf(text: string): ViewName {
  const plain = text.replace(/^hp-/, "");
  return FORMER[plain] ?? VIEWS.find(([id]) => id === plain)?.[0] ?? "";
}

interface Props {
  experiment: Experiment;
  trials: Trial[];
  names: Name[];
  endings: Map<number, Ending>;
  topics: string[];
}

export function Hyperparameters({ experiment, trials, names, endings, topics }: Props) {
  const judge = useJudge(experiment);
  const values = useValues(trials, judge, topics);
  const all = useSameLooking(useMemo(() => toRows(trials, values, endings, judge.smaller), [trials, values, endings, judge.smaller]));
  const rows = useMemo(() => (judge.top ? all.slice(0, judge.top) : all), [all, judge.top]);
  if (rows.length)
    return <Views experiment={experiment} rows={rows} trials={trials} names={names} topics={topics} endings={endings} total={all.length} />;
  return (
    <>
      <div className="toolbar">
        <JudgeControls experiment={experiment} names={names} total={all.length} />
      </div>
      <Card>
        {values ? (
          <Empty title={`No trial has reported ${judge.name}${judge.batches === null ? "" : ` at ${judge.batches} batches`} yet`}>
            The plots appear once two trials have.
          </Empty>
        ) : (
          <Loading shape="chart" />
        )}
      </Card>
    </>
  );
}

/** Returns the previous rows until something visible changes, since running trials change all the time. */
function useSameLooking(rows: Row[]): Row[] {
  const held = useRef(rows);
  if (held.current !== rows && !looksSame(held.current, rows)) held.current = rows;
  return held.current;
}

const NONE: ReadonlySet<number> = new Set();

function Views({ experiment, rows, trials, names, topics, endings, total }: Props & { rows: Row[]; total: number }) {
  const { params, set } = useLink();
  const former = useParams().view;
  const view = viewOf(params.get("v") ?? former ?? "");
  const judge = useJudge(experiment);
  const navigate = useNavigate();
  const open = (row: Row) => navigate(`/experiments/${experiment.id}/trials/${row.trial.id}/overview`);
  const ranged = useMemo(() => scalesOf(experiment.config), [experiment.config]);
  const axes = useAxes(rows, judge.name, judge.scaling, ranged);
  const brushes = useMemo(() => readBrushes(params.get("f")), [params]);
  const chosen = useMemo(() => rows.filter((row) => fits(row, brushes, axes.byName)), [rows, brushes, axes.byName]);
  const byRank = params.get("cr") === "rank";
  const share = useShare(rows, axes.metric, judge.smaller, byRank);
  const tint = useMemo(() => (row: Row) => ramp(share(row)), [share]);
  const brush = (next: Brush[]) => set({ f: writeBrushes(next) });
  const controls = { axes: axes.axes, brushes, onBrush: brush, onMove: axes.move };
  const shown = { experiment, rows, chosen, axes, share, tint, open, judge, byRank };
  return (
    <>
      <div className="toolbar">
        <JudgeControls experiment={experiment} names={names} total={total}>
          <Popover label="Axes and ranges" text="Axes and ranges" icon={<SlidersHorizontal />} small wide>
            <AxisControls {...controls} all={axes.names} hidden={axes.hidden} onHide={axes.hide} />
          </Popover>
          {brushes.map((each) => (
            <Chip key={each.name} onRemove={() => brush(brushes.filter((other) => other.name !== each.name))}>
              {brushWords(each, axes.byName.get(each.name))}
            </Chip>
          ))}
          <span className="ink3 sm" role="status">
            {chosen.length === rows.length ? many(rows.length, "trial") : `${count(chosen.length)} of ${many(rows.length, "trial")} chosen`}
          </span>
        </JudgeControls>
        <span className="sp" />
        <Segments name="View" value={view} options={VIEWS} onChange={(v) => set({ v })} />
      </div>
      {view === "" && (
        <Whole
          {...shown}
          controls={controls}
          names={names}
          topics={topics}
          trials={trials}
          endings={endings}
          wanted={params.get("v") ?? former}
        />
      )}
      {view === "curves" && <Curves {...shown} names={names} topics={topics} />}
      {view === "pairs" && <Two {...shown} />}
      {view === "table" && <Table experiment={experiment} chosen={chosen} trials={trials} />}
    </>
  );
}

function Curves({ chosen, judge, names, topics, experiment, rows }: Shown & { names: Name[]; topics: string[] }) {
  const { params } = useLink();
  const by = params.get("cb") ?? "metric";
  const ranked = useMemo(() => rows.map((row) => row.trial.id), [rows]);
  const choice = useChosen(experiment.id, ranked);
  const all = useListed(
    experiment,
    useMemo(() => rows.map((row) => row.trial), [rows]),
    NONE,
  );
  const looks = useMemo(
    () => looksOf(all, { by: by === "chosen" ? "" : by, chosen: choice.chosen, smaller: judge.smaller }),
    [all, by, choice.chosen, judge.smaller],
  );
  const curves = useMemo(() => chosen.map((row) => curveOf(row.trial, { end: row.ending })), [chosen]);
  const named = [...new Set(names.filter((each) => !isProfile(each.group)).map((each) => each.name))];
  return (
    <div className="board" id="curves">
      <Tools names={named} groups={[]} ways={[]} note={null} />
      <MetricChart
        trials={curves}
        looks={looks}
        metric={judge.name}
        group={judge.group}
        topics={topics}
        height={460}
        searched
        smaller={judge.smaller}
        note={`${judge.group}, ${many(chosen.length, "trial")} by their ${judge.name}`}
      />
    </div>
  );
}

const GROUNDS = { "": "", contour: "1", cells: "c" };
const groundOf = (key: string | null) => (key === "1" ? "contour" : key === "c" ? "cells" : "");

function Two({ chosen, axes: made, share, open, byRank, judge }: Shown) {
  const { params, set } = useLink();
  const pair: [string, string] = [params.get("px") ?? made.shown[0]?.name ?? "", params.get("py") ?? made.shown[1]?.name ?? ""];
  const axes = made.shown.map((axis) => [axis.name, axis.name] as const);
  if (made.shown.length < 2)
    return (
      <Card>
        <Empty title="Fewer than two hyperparameters differ">This view needs at least two.</Empty>
      </Card>
    );
  return (
    <Part id="pairs" title="Pairs of hyperparameters">
      <div className="toolbar inset">
        <Select small label="x" value={pair[0]} options={axes} onChange={(px) => set({ px })} />
        <Select small label="y" value={pair[1]} options={axes} onChange={(py) => set({ py })} />
        <Select
          small
          label="Colour"
          value={byRank ? "rank" : ""}
          options={[
            ["", judge.name],
            ["rank", "rank"],
          ]}
          onChange={(cr) => set({ cr })}
        />
        <Select
          small
          label="Below"
          value={groundOf(params.get("k"))}
          options={[
            ["", "nothing"],
            ["cells", "heat cells"],
            ["contour", "contour"],
          ]}
          onChange={(ground) => set({ k: GROUNDS[ground] })}
        />
      </div>
      <Pairs
        rows={chosen}
        axes={made.shown}
        pair={pair}
        ground={groundOf(params.get("k"))}
        tint={share}
        onPair={([px, py]) => set({ px, py })}
        onOpen={open}
      />
      <Key of="dots" metric={made.metric} smaller={judge.smaller} />
    </Part>
  );
}

function Table({ experiment, chosen, trials }: { experiment: Experiment; chosen: Row[]; trials: Trial[] }) {
  const listed = useMemo(() => {
    const fresh = new Map(trials.map((trial) => [trial.id, trial]));
    return chosen.map((row) => fresh.get(row.trial.id) ?? row.trial);
  }, [chosen, trials]);
  return <TrialTable experiment={experiment} trials={listed} />;
}
