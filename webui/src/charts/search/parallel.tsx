/** Each trial is a line over its hyperparameters and the metric; a brush on an axis chooses trials on the whole page. */

import { useCallback, useMemo, useState } from "react";

import { number } from "../../parts/format";
import { light } from "../light";
import { css } from "../theme";
import { type Axis, type Brush, onAxis, share, ticksOf, valueAt } from "./axes";
import { Canvas, type Frame, ramp, type Where } from "./canvas";
import { nearestLine, placesOn } from "./near";
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
  const [drag, setDrag] = useState<Drag | null>(null);
  const columns = useMemo(() => placesOn(axes, rows), [axes, rows]);
  const byTrial = useMemo(() => new Map(rows.map((row, at) => [row.trial.id, at])), [rows]);
  const inside = useMemo(() => new Set(chosen.map((row) => row.trial.id)), [chosen]);
  const draw = useCallback(
    (frame: Frame) => {
      const to = places(frame.width, axes.length);
      const stroke = (fits: boolean) => {
        frame.ctx.globalAlpha = fits ? (chosen.length > 300 ? 0.35 : 0.8) : 0.08;
        // The best come last, above the others.
        for (let at = rows.length - 1; at >= 0; at--)
          if (inside.has(rows[at]!.trial.id) === fits)
            line(frame.ctx, columns, at, to, rows[at]!, fits ? ramp(tint(rows[at]!)) : css("--soft"), 1.4);
      };
      stroke(false);
      stroke(true);
      frame.ctx.globalAlpha = 1;
      axes.forEach((axis, at) =>
        drawAxis(
          frame,
          axis,
          to(at, 0)[0],
          brushes.find((one) => one.name === axis.name),
        ),
      );
    },
    [rows, columns, inside, chosen.length, axes, brushes, tint],
  );
  const above = useCallback(
    (frame: Frame, lit: number | null) => {
      const to = places(frame.width, axes.length);
      const at = byTrial.get(lit ?? NaN);
      if (at !== undefined) {
        const row = rows[at]!;
        line(frame.ctx, columns, at, to, row, ramp(tint(row)), 3.5);
        frame.ctx.fillStyle = css("--ink");
        frame.ctx.font = "600 12px system-ui, sans-serif";
        frame.ctx.fillText(`trial ${row.trial.id}: ${number(row.value, 5)}`, 4, HEIGHT - 4);
      }
      if (drag) drawDrag(frame, drag, axes, to);
    },
    [rows, columns, byTrial, axes, tint, drag],
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
    setDrag({
      axis,
      kind: where.y < TOP - 8 ? "move" : "brush",
      from: where.y < TOP - 8 ? where.x : where.y,
      to: where.y < TOP - 8 ? where.x : where.y,
    });
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
  const under = ({ x, y, width }: Where): Row | undefined => {
    const to = places(width, axes.length);
    const across = axes.map((_, at) => to(at, 0)[0]);
    return rows[nearestLine(columns, across, [to(0, 0)[1], to(0, 1)[1]], x, y, REACH, (at) => !inside.has(rows[at]!.trial.id))];
  };
  const faint = useCallback((lit: number | null) => inside.has(lit ?? NaN), [inside]);
  return (
    <Canvas
      name="Hyperparameters of the trials and their metric, a line for each trial; the table below has the same"
      height={HEIGHT}
      draw={draw}
      above={above}
      faint={faint}
      cursor={drag ? "grabbing" : hand}
      onDown={down}
      onMove={move}
      onUp={up}
      onLeave={() => !drag && light(null)}
    />
  );
}

const hand = (lit: number | null) => (lit === null ? "crosshair" : "pointer");

const places =
  (width: number, count: number) =>
  (axis: number, place: number): [number, number] => [
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

function line(ctx: CanvasRenderingContext2D, columns: Float64Array[], row: number, to: To, { ending }: Row, tint: string, width: number) {
  ctx.beginPath();
  let open = false;
  columns.forEach((column, at) => {
    const place = column[row]!;
    const measured = !Number.isNaN(place);
    if (measured && open) ctx.lineTo(...to(at, place));
    else if (measured) ctx.moveTo(...to(at, place));
    open = measured;
  });
  ctx.strokeStyle = tint;
  ctx.lineWidth = width;
  ctx.setLineDash(ending === "stopped" ? [6, 3] : ending === "failed" ? [2, 4] : []);
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

/** The same by keyboard: which axes are shown, in which order, and between which values. */
export function AxisControls({
  all,
  hidden,
  axes,
  brushes,
  onHide,
  onMove,
  onBrush,
}: {
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
    if (text !== "" && Number.isFinite(Number(text)))
      onBrush([...brushes.filter((one) => one.name !== axis.name), { ...before, [end]: Number(text) }]);
  };
  return (
    <details className="axes">
      <summary>Axes and ranges{brushes.length ? ` (${brushes.length} chosen)` : ""}</summary>
      <div className="scroll" tabIndex={0}>
        <table aria-label="Axes">
          <thead>
            <tr>
              <th>Axis</th>
              <th>Order</th>
              <th className="num">From</th>
              <th className="num">To</th>
              <th>
                <span className="hidden">Range</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {[...axes.map((one) => one.name), ...all.filter((name) => hidden.has(name))].map((name) => {
              const at = axes.findIndex((one) => one.name === name);
              const axis = axes[at];
              const brush = brushes.find((one) => one.name === name);
              const end = (side: "from" | "to") =>
                axis &&
                !axis.kinds && (
                  <input
                    type="number"
                    step="any"
                    aria-label={`${name} ${side}`}
                    value={brush?.[side] ?? ""}
                    placeholder={number(side === "from" ? axis.low : axis.high, 4)}
                    onChange={(event) => change(axis, side, event.target.value)}
                  />
                );
              return (
                <tr key={name}>
                  <td>
                    <label>
                      <input type="checkbox" checked={!hidden.has(name)} onChange={(event) => onHide(name, !event.target.checked)} /> {name}
                    </label>
                  </td>
                  <td>
                    {axis && (
                      <span className="actions">
                        <button type="button" aria-label={`${name} to the left`} disabled={at === 0} onClick={() => onMove(name, at - 1)}>
                          ←
                        </button>
                        <button
                          type="button"
                          aria-label={`${name} to the right`}
                          disabled={at === axes.length - 1}
                          onClick={() => onMove(name, at + 1)}
                        >
                          →
                        </button>
                      </span>
                    )}
                  </td>
                  <td className="num">
                    {axis?.kinds ? (
                      <Kinds
                        axis={axis}
                        brush={brush}
                        onChange={(one) => onBrush([...brushes.filter((each) => each.name !== name), ...(one ? [one] : [])])}
                      />
                    ) : (
                      end("from")
                    )}
                  </td>
                  <td className="num">{end("to")}</td>
                  <td>
                    {brush && (
                      <button type="button" onClick={() => onBrush(brushes.filter((one) => one.name !== name))}>
                        All
                      </button>
                    )}
                  </td>
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
        <option key={kind} value={kind}>
          {kind}
        </option>
      ))}
    </select>
  );
}
