/** One row of controls for how the charts of a page are drawn. */

import { Settings2 } from "lucide-react";
import { useState } from "react";

import { Segments } from "../ui/button";
import { Check, Search, Select, Slider, TextField } from "../ui/field";
import { Popover } from "../ui/menu";
import { timedAxis, useLink, useView, type View as Drawn, writeRange } from "./link";

/** Labels of the colour modes; see `By`. */
export type Ways = (readonly [by: string, name: string])[];

type Axes = readonly (readonly [axis: string, name: string])[];

interface Props {
  /** Metrics that can be the x axis. */
  names: string[];
  groups: string[];
  /** Empty if there is only one trial. */
  ways: Ways;
  /** How many of the metrics are shown; null if there is only one chart. */
  note: string | null;
  /** All metrics shown are known by time only. */
  timed?: boolean;
}

const MOST_AXES = 500;
const BY_TIME = [
  ["since", "time since start"],
  ["time", "time"],
] as const;
const LOG = [
  ["", "Linear"],
  ["log", "Log"],
] as const;

export function Tools({ names, groups, ways, note, timed = false }: Props) {
  const page = useView();
  const view = timed ? { ...page, x: timedAxis(page.x) } : page;
  const own = view.x.startsWith("metric:") && !names.includes(view.x.slice(7)) ? [view.x.slice(7)] : [];
  const axes: Axes = timed
    ? BY_TIME
    : [
        ["batches", "batches"],
        ...(names.includes("epoch") || view.x === "epoch" ? [["epoch", "epoch"] as const] : []),
        ["time", "time"],
        ["since", "time since start"],
        ...[...own, ...names.filter((name) => name !== "epoch").slice(0, MOST_AXES)].map((name) => [`metric:${name}`, name] as const),
      ];
  return (
    <div className="toolbar chart-tools">
      {note !== null && <Search small label="Find a metric" value={view.find} onChange={(q) => view.set({ q })} />}
      <View x={view.x} axes={axes} ways={ways} small />
      <span className={view.find ? "ink3 sm nowrap" : "vh"} role="status">
        {note}
      </span>
      <span className="sp" />
      <Popover label="More chart options" icon={<Settings2 />} kind="ghost" small>
        <div className="form narrow-only">
          <View x={view.x} axes={axes} ways={ways} />
        </div>
        <More view={view} groups={groups} ways={ways} />
      </Popover>
    </div>
  );
}

/** In the row if there is room, otherwise in the panel. */
function View({ x, axes, ways, small = false }: { x: string; axes: Axes; ways: Ways; small?: boolean }) {
  const view = useView();
  return (
    <>
      <Select
        small={small}
        above={!small}
        label="x"
        value={x}
        options={axes}
        // The first axis is the default, so the address does not name it.
        onChange={(x) => view.set({ x: x === axes[0]?.[0] ? "" : x, z: "" })}
      />
      <Segments small={small} name="Scale of y" value={view.log ? "log" : ""} options={LOG} onChange={(y) => view.set({ y })} />
      <Slider label="Smoothing" value={view.smooth} min={0} max={0.99} step={0.01} onChange={(s) => view.set({ s: s ? String(s) : "" })} />
      {ways.length > 0 && (
        <Select small={small} above={!small} label="Colour" value={view.by} options={ways} onChange={(cb) => view.set({ cb })} />
      )}
    </>
  );
}

const COLUMNS = [
  ["", "As many as fit"],
  ["1", "1"],
  ["2", "2"],
  ["3", "3"],
] as const;

function More({ view, groups, ways }: { view: ReturnType<typeof useView>; groups: string[]; ways: Ways }) {
  const { params, set } = useLink();
  return (
    <div className="form">
      <Check label="Band of extremes" checked={view.band} onChange={(on) => set({ b: on ? "" : "0" })} />
      {ways.length > 0 && (
        <Select
          above
          label="Mean of trials with the same"
          hint="One line per group, with a band from its minimum to its maximum."
          value={view.together}
          options={[["", "none: one line per trial"], ...ways.filter(([by]) => by && by !== "metric")]}
          onChange={(gb) => set({ gb })}
        />
      )}
      {groups.length > 1 && (
        <Select
          above
          label="Group"
          value={params.get("g") ?? ""}
          options={[["", "all"], ...groups.map((group) => [group, group] as const)]}
          onChange={(g) => set({ g })}
        />
      )}
      <Select
        above
        label="Charts in a row"
        value={view.columns ? String(view.columns) : ""}
        options={COLUMNS}
        onChange={(cols) => set({ cols })}
      />
      <RangeOfX key={`${view.x} ${view.zoom}`} view={view} />
    </div>
  );
}

const text = (x: string, value: number) =>
  x === "time" ? new Date((value - new Date().getTimezoneOffset() * 60) * 1000).toISOString().slice(0, 19) : String(value);
const value = (x: string, text: string) => (x === "time" ? Date.parse(text) / 1000 : Number(text));

/** The visible range as numbers, to zoom without a pointer. It applies once both ends are valid. */
function RangeOfX({ view: { x, zoom, set } }: { view: Drawn & { set: (changes: Record<string, string>) => void } }) {
  const [ends, setEnds] = useState(() => (zoom ?? []).map((end) => text(x, end)));
  const take = () => {
    const [from, to] = [value(x, ends[0] ?? ""), value(x, ends[1] ?? "")];
    if (ends[0] && ends[1] && Number.isFinite(from) && from < to) set({ x: x === "batches" ? "" : x, z: writeRange([from, to]) });
    else if (!ends[0] && !ends[1] && zoom) set({ z: "" });
  };
  const field = (at: 0 | 1, label: string) => (
    <TextField
      type={x === "time" ? "datetime-local" : "number"}
      step="any"
      label={label}
      value={ends[at] ?? ""}
      onChange={(next) => setEnds(at ? [ends[0] ?? "", next] : [next, ends[1] ?? ""])}
      onBlur={take}
      onKeyDown={(event) => event.key === "Enter" && take()}
    />
  );
  return (
    <div className="two-up">
      {field(0, "From")}
      {field(1, "To")}
    </div>
  );
}
