/** How the curves of a page are drawn. */

import { useState } from "react";

import { useView, writeRange } from "./link";

const text = (x: string, value: number) =>
  x === "time" ? new Date((value - new Date().getTimezoneOffset() * 60) * 1000).toISOString().slice(0, 19) : String(value);
const value = (x: string, text: string) => (x === "time" ? Date.parse(text) / 1000 : Number(text));

export function ViewControls({ names }: { names: string[] }) {
  const view = useView();
  const metrics = names.filter((name) => name !== "epoch");
  const own = view.x.startsWith("metric:") && !metrics.includes(view.x.slice(7)) ? [view.x.slice(7)] : [];
  return (
    <div className="controls">
      <label>
        x
        <select value={view.x} onChange={(event) => view.set({ x: event.target.value.replace(/^batches$/, ""), z: "" })}>
          <option value="batches">batches</option>
          {(names.includes("epoch") || view.x === "epoch") && <option value="epoch">epoch</option>}
          <option value="time">time</option>
          <option value="since">time since start</option>
          {[...own, ...metrics.slice(0, 500)].map((name) => (
            <option key={name} value={`metric:${name}`}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        y
        <select value={view.log ? "log" : ""} onChange={(event) => view.set({ y: event.target.value })}>
          <option value="">linear</option>
          <option value="log">logarithmic</option>
        </select>
      </label>
      <label>
        smoothing
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={view.smooth}
          title={String(view.smooth)}
          onChange={(event) => view.set({ s: event.target.value === "0" ? "" : event.target.value })}
        />
      </label>
      <label>
        <input type="checkbox" checked={view.band} onChange={(event) => view.set({ b: event.target.checked ? "" : "0" })} />
        band of extremes
      </label>
      <Range key={`${view.x} ${view.zoom}`} x={view.x} zoom={view.zoom} onChange={(zoom) => view.set({ z: writeRange(zoom) })} />
    </div>
  );
}

/** The part that is looked at, as numbers: zoom without a pointer. It is taken up once both ends make sense. */
function Range({ x, zoom, onChange }: { x: string; zoom: [number, number] | null; onChange: (zoom: [number, number] | null) => void }) {
  const [ends, setEnds] = useState(() => (zoom ?? []).map((end) => text(x, end)));
  const take = () => {
    const [from, to] = [value(x, ends[0] ?? ""), value(x, ends[1] ?? "")];
    if (ends[0] && ends[1] && Number.isFinite(from) && from < to) onChange([from, to]);
    else if (!ends[0] && !ends[1] && zoom) onChange(null);
  };
  const field = (at: 0 | 1, name: string) => (
    <input
      type={x === "time" ? "datetime-local" : "number"}
      step="any"
      aria-label={name}
      placeholder={name}
      value={ends[at] ?? ""}
      title={x === "since" ? "in seconds" : "drag in a chart does the same"}
      onChange={(event) => setEnds(at ? [ends[0] ?? "", event.target.value] : [event.target.value, ends[1] ?? ""])}
      onBlur={take}
      onKeyDown={(event) => event.key === "Enter" && take()}
    />
  );
  return (
    <span className="actions">
      range {field(0, "from")} {field(1, "to")}
      <button type="button" disabled={!zoom} onClick={() => onChange(null)}>
        Whole range
      </button>
    </span>
  );
}
