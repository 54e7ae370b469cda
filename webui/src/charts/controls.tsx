/** How the curves of a page are drawn. */

import { duration } from "../parts/format";
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
          type="range" min={0} max={0.99} step={0.01} value={view.smooth} title={String(view.smooth)}
          onChange={(event) => view.set({ s: event.target.value === "0" ? "" : event.target.value })}
        />
      </label>
      <label>
        <input type="checkbox" checked={view.band} onChange={(event) => view.set({ b: event.target.checked ? "" : "0" })} />
        band of extremes
      </label>
      {view.zoom && <Range x={view.x} zoom={view.zoom} onChange={(zoom) => view.set({ z: writeRange(zoom) })} />}
      {!view.zoom && <span className="soft">drag in a chart to zoom</span>}
    </div>
  );
}

/** The part that is looked at, as numbers: zoom without a pointer. */
function Range({ x, zoom, onChange }: { x: string; zoom: [number, number]; onChange: (zoom: [number, number] | null) => void }) {
  const kind = x === "time" ? "datetime-local" : "number";
  const ends = (at: 0 | 1, given: string) => {
    const next: [number, number] = [...zoom];
    next[at] = value(x, given);
    if (Number.isFinite(next[at]) && next[0] < next[1]) onChange(next);
  };
  return (
    <span className="actions">
      <input type={kind} step="any" aria-label="from" title={x === "since" ? duration(zoom[0]) : ""} value={text(x, zoom[0])} onChange={(event) => ends(0, event.target.value)} />
      <input type={kind} step="any" aria-label="to" title={x === "since" ? duration(zoom[1]) : ""} value={text(x, zoom[1])} onChange={(event) => ends(1, event.target.value)} />
      <button type="button" onClick={() => onChange(null)}>
        Whole range
      </button>
    </span>
  );
}
