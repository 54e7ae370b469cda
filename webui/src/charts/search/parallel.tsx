/** Each trial is a line over its hyperparameters and the metric; a brush on an axis chooses trials on the whole page. */

import { useCallback, useMemo, useRef, useState } from "react";

import { number } from "../../parts/format";
import { css } from "../theme";
import { light, useLit } from "../light";
import { type Axis, type Brush, onAxis, placeOf, share, ticksOf, valueAt } from "./axes";
import { Canvas, type Frame, ramp, type Where } from "./canvas";
import type { Row } from "./rows";

const HEIGHT = 340;
const [TOP, BOTTOM, SIDE] = [46, 22, 60];
const NEAR = 22;
const REACH = 8;

interface Props {
  /** Every trial, also those that the brushes leave out. */
  rows: Row[];
  chosen: Row[];
  /** In the order shown; the metric last. */
  axes: Axis[];
  brushes: Brush[];
  onBrush: (brushes: Brush[]) => void;
  onMove: (name: string, to: number) => void;
  tint: (row: Row) => number;
  onOpen: (row: Row) => void;
}
type Drag = { axis: number; from: number; to: number; kind: "brush" | "move" };

export function Parallel({ rows, chosen, axes, brushes, onBrush, onMove, tint, onOpen }: Props) {
  const lit = useLit();
  const [drag, setDrag] = useState<Drag | null>(null);
  const width = useRef(1000);
  const lines = useMemo(() => rows.map((row) => ({ row, places: axes.map((axis) => placeOf(axis, row)) })), [rows, axes]);
  const inside = useMemo(() => new Set(chosen.map((row) => row.trial.id)), [chosen]);
  const draw = useCallback(
    (frame: Frame) => {
      width.current = frame.width;
      const to = places(frame.width, axes.length);
      const order = [...lines].reverse().sort((a, b) => Number(inside.has(a.row.trial.id)) - Number(inside.has(b.row.trial.id)));
      for (const { row, places } of order) {
        const fits = inside.has(row.trial.id);
        frame.ctx.globalAlpha = fits ? (chosen.length > 300 ? 0.35 : 0.8) : 0.08;
        line(frame.ctx, places, to, row, fits ? ramp(tint(row)) : css("--soft"), 1.4);
      }
      frame.ctx.globalAlpha = 1;
      axes.forEach((axis, at) => drawAxis(frame, axis, to(at, 0)[0], brushes.find((one) => one.name === axis.name)));
    },
    [lines, inside, chosen.length, axes, brushes, tint],
  );
  const above = useCallback(
    (frame: Frame) => {
      const to = places(frame.width, axes.length);
      const found = lines.find(({ row }) => row.trial.id === lit);
      if (found) {
        line(frame.ctx, found.places, to, found.row, ramp(tint(found.row)), 3.5);
        frame.ctx.fillStyle = css("--ink");
        frame.ctx.font = "600 12px system-ui, sans-serif";
        frame.ctx.fillText(`trial ${found.row.trial.id}: ${number(found.row.value, 5)}`, 4, HEIGHT - 4);
      }
      if (drag) drawDrag(frame, drag, axes, to);
    },
    [lines, lit, axes, tint, drag],
  );
  const axisAt = (where: Where) => {
    const to = places(where.width, axes.length);
    const found = axes.findIndex((_, at) => Math.abs(to(at, 0)[0] - where.x) < NEAR);
    return found;
  };
  const down = (where: Where) => {
    const axis = axisAt(where);
    if (axis < 0) return;
    where.event.currentTarget.setPointerCapture?.(where.event.pointerId);
    setDrag({ axis, kind: where.y < TOP - 8 ? "move" : "brush", from: where.y < TOP - 8 ? where.x : where.y, to: where.y < TOP - 8 ? where.x : where.y });
  };
  const move = (where: Where) => {
    if (drag) setDrag({ ...drag, to: drag.kind === "move" ? where.x : where.y });
    else light(under(where)?.trial.id ?? null);
  };
  const up = (where: Where) => {
    if (!drag) {
      const row = under(where);
      if (row) onOpen(row);
      return;
    }
    setDrag(null);
    const axis = axes[drag.axis]!;
    const others = brushes.filter((one) => one.name !== axis.name);
    if (drag.kind === "move") {
      const step = (where.width - 2 * SIDE) / Math.max(1, axes.length - 1);
      onMove(axis.name, Math.min(axes.length - 1, Math.max(0, Math.round((where.x - SIDE) / step))));
    } else if (Math.abs(drag.to - drag.from) < 4) onBrush(others);
    else onBrush([...others, brushOf(axis, drag.from, drag.to)]);
  };
  const under = (where: Where): Row | null => {
    const to = places(where.width, axes.length);
    let [best, reach]: [Row | null, number] = [null, REACH];
    for (const { row, places } of lines) {
      if (!inside.has(row.trial.id)) continue;
      const away = distance(places, to, where);
      if (away < reach) [best, reach] = [row, away];
    }
    return best;
  };
  return (
    <Canvas
      name="Hyperparameters of the trials and their metric, a line for each trial; the table below has the same"
      height={HEIGHT} draw={draw} above={above} faint={lit !== null && inside.has(lit)} cursor={drag ? "grabbing" : lit === null ? "crosshair" : "pointer"}
      onDown={down} onMove={move} onUp={up} onLeave={() => !drag && light(null)}
    />
  );
}

const places = (width: number, count: number) => (axis: number, place: number): [number, number] => [
  SIDE + (axis * (width - 2 * SIDE)) / Math.max(1, count - 1),
  TOP + (1 - place) * (HEIGHT - TOP - BOTTOM),
];

const placeAt = (y: number) => Math.min(1, Math.max(0, 1 - (y - TOP) / (HEIGHT - TOP - BOTTOM)));

/** What two heights on an axis choose; of kinds those that lie between. */
function brushOf(axis: Axis, from: number, to: number): Brush {
  const ends = [placeAt(from), placeAt(to)].sort((a, b) => a - b);
  if (axis.kinds && axis.kinds.length < 2) return { name: axis.name, from: 0, to: 0 };
  return { name: axis.name, from: valueAt(axis, ends[0]!), to: valueAt(axis, ends[1]!) };
}

type To = (axis: number, place: number) => [number, number];

function line(ctx: CanvasRenderingContext2D, places: (number | null)[], to: To, row: Row, tint: string, width: number) {
  ctx.beginPath();
  let open = false;
  places.forEach((place, at) => {
    if (place === null) return void (open = false);
    if (open) ctx.lineTo(...to(at, place));
    else ctx.moveTo(...to(at, place));
    open = true;
  });
  ctx.strokeStyle = tint;
  ctx.lineWidth = width;
  ctx.setLineDash(row.ending === "stopped" ? [6, 3] : row.ending === "failed" ? [2, 4] : []);
  ctx.stroke();
  ctx.setLineDash([]);
}

function drawAxis({ ctx, height }: Frame, axis: Axis, x: number, brush?: Brush) {
  ctx.strokeStyle = css("--soft");
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x, TOP);
  ctx.lineTo(x, height - BOTTOM);
  ctx.stroke();
  ctx.fillStyle = css("--ink");
  ctx.font = "600 12px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.fillText(axis.name, x, 16, 130);
  ctx.font = "11px system-ui, sans-serif";
  ctx.textAlign = "left";
  for (const [place, text] of ticksOf(axis)) {
    const y = TOP + (1 - place) * (height - TOP - BOTTOM);
    const wide = Math.min(80, ctx.measureText(text).width);
    ctx.fillStyle = css("--card");
    ctx.globalAlpha = 0.75;
    ctx.fillRect(x + 4, y - 7, wide + 4, 14);
    ctx.globalAlpha = 1;
    ctx.fillStyle = css("--soft");
    ctx.fillText(text, x + 6, y + 4, 80);
  }
  if (!brush) return;
  const [from, to] = [brush.from, brush.to].map((value) => TOP + (1 - share(axis, value)) * (height - TOP - BOTTOM));
  ctx.fillStyle = css("--accent");
  ctx.globalAlpha = 0.35;
  ctx.fillRect(x - 6, to!, 12, Math.max(3, from! - to!));
  ctx.globalAlpha = 1;
}

function drawDrag({ ctx, height }: Frame, drag: Drag, axes: Axis[], to: To) {
  ctx.fillStyle = css("--accent");
  ctx.globalAlpha = 0.4;
  if (drag.kind === "brush") ctx.fillRect(to(drag.axis, 0)[0] - 6, Math.min(drag.from, drag.to), 12, Math.abs(drag.to - drag.from));
  else ctx.fillRect(drag.to - 1, TOP, 2, height - TOP - BOTTOM);
  ctx.globalAlpha = 1;
  if (drag.kind === "move") ctx.fillText(axes[drag.axis]!.name, drag.to + 6, TOP + 12);
}

/** How far a point is from the line of a trial, measured up and down between its two axes. */
function distance(places: (number | null)[], to: To, where: { x: number; y: number }): number {
  for (let at = 0; at + 1 < places.length; at++) {
    const [a, b] = [places[at], places[at + 1]];
    if (a === null || b === null || a === undefined || b === undefined) continue;
    const [[x0, y0], [x1, y1]] = [to(at, a), to(at + 1, b)];
    if (where.x < x0 || where.x > x1) continue;
    return Math.abs(y0 + ((y1 - y0) * (where.x - x0)) / (x1 - x0 || 1) - where.y);
  }
  return Infinity;
}

/** The same by keyboard: which axes are shown, in which order, and between which values. */
export function AxisControls({ all, hidden, axes, brushes, onHide, onMove, onBrush }: {
  all: string[];
  hidden: Set<string>;
  axes: Axis[];
  brushes: Brush[];
  onHide: (name: string, hide: boolean) => void;
  onMove: (name: string, to: number) => void;
  onBrush: (brushes: Brush[]) => void;
}) {
  const change = (axis: Axis, end: "from" | "to", text: string) => {
    const before = brushes.find((one) => one.name === axis.name) ?? { name: axis.name, from: axis.low, to: axis.high };
    if (text !== "" && Number.isFinite(Number(text))) onBrush([...brushes.filter((one) => one.name !== axis.name), { ...before, [end]: Number(text) }]);
  };
  return (
    <details className="axes">
      <summary>Axes and ranges{brushes.length ? ` (${brushes.length} chosen)` : ""}</summary>
      <div className="scroll" tabIndex={0}>
      <table aria-label="Axes">
        <thead>
          <tr><th>Axis</th><th>Order</th><th className="num">From</th><th className="num">To</th><th><span className="hidden">Range</span></th></tr>
        </thead>
        <tbody>
          {[...axes.map((one) => one.name), ...all.filter((name) => hidden.has(name))].map((name) => {
            const at = axes.findIndex((one) => one.name === name);
            const axis = axes[at];
            const brush = brushes.find((one) => one.name === name);
            const end = (side: "from" | "to") => axis && !axis.kinds && (
              <input type="number" step="any" aria-label={`${name} ${side}`} value={brush?.[side] ?? ""} placeholder={number(side === "from" ? axis.low : axis.high, 4)} onChange={(event) => change(axis, side, event.target.value)} />
            );
            return (
              <tr key={name}>
                <td>
                  <label><input type="checkbox" checked={!hidden.has(name)} onChange={(event) => onHide(name, !event.target.checked)} /> {name}</label>
                </td>
                <td>
                  {axis && (
                    <span className="actions">
                      <button type="button" aria-label={`${name} to the left`} disabled={at === 0} onClick={() => onMove(name, at - 1)}>←</button>
                      <button type="button" aria-label={`${name} to the right`} disabled={at === axes.length - 1} onClick={() => onMove(name, at + 1)}>→</button>
                    </span>
                  )}
                </td>
                <td className="num">{axis?.kinds ? <Kinds axis={axis} brush={brush} onChange={(one) => onBrush([...brushes.filter((each) => each.name !== name), ...(one ? [one] : [])])} /> : end("from")}</td>
                <td className="num">{end("to")}</td>
                <td>{brush && <button type="button" onClick={() => onBrush(brushes.filter((one) => one.name !== name))}>All</button>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      </div>
    </details>
  );
}

function Kinds({ axis, brush, onChange }: { axis: Axis; brush?: Brush; onChange: (brush: Brush | null) => void }) {
  const value = brush ? axis.kinds![Math.round((brush.from + brush.to) / 2)] : "";
  const pick = (kind: string) => {
    const at = onAxis(axis, JSON.parse(kind || "null"));
    onChange(kind === "" || at === null ? null : { name: axis.name, from: at, to: at });
  };
  return (
    <select aria-label={`${axis.name} is`} value={value} onChange={(event) => pick(event.target.value)}>
      <option value="">any</option>
      {axis.kinds!.map((kind) => (
        <option key={kind} value={kind}>{kind}</option>
      ))}
    </select>
  );
}
