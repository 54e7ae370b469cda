/**
 * Parallel coordinates: each trial is a line over its hyperparameters and the metric; a brush on an axis selects trials
 * on the whole page.
 */

import { useCallback, useMemo, useState } from "react";

import { number } from "../../parts/format";
import { light } from "../light";
import { FONT } from "../paint";
import { css } from "../theme";
import { type Axis, type Brush, share, ticksOf, valueAt } from "./axes";
import { Canvas, type Frame, type Where } from "./canvas";
import { ramp } from "../ramp";
import { nearestLine, placesOn } from "./near";
import type { Row } from "./rows";

const HEIGHT = 340;
const [TOP, BOTTOM, SIDE] = [52, 22, 74];
/** Between two axes: names and ticks stay legible, and the drawing scrolls sideways where there is too little room. */
const LEAST = 90;
const NEAR = 22;
const REACH = 8;

interface Props {
  /** All trials, including those that the brushes exclude. */
  rows: Row[];
  chosen: Row[];
  /** In display order; the metric is last. */
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
        frame.ctx.globalAlpha = fits ? (chosen.length > 300 ? 0.4 : 0.9) : rows.length > 300 ? 0.08 : 0.25;
        // The best come last, so that they are drawn above the others.
        for (let at = rows.length - 1; at >= 0; at--)
          if (inside.has(rows[at]!.trial.id) === fits)
            line(frame.ctx, columns, at, to, rows[at]!, fits ? ramp(tint(rows[at]!)) : css("--s-rest"), 1.4);
      };
      stroke(false);
      stroke(true);
      frame.ctx.globalAlpha = 1;
      axes.forEach((axis, at) =>
        drawAxis(
          frame,
          axis,
          to(at, 0)[0],
          (frame.width - 2 * SIDE) / Math.max(1, axes.length - 1) - 10,
          at > 0 && at === axes.length - 1,
          brushes.find((brush) => brush.name === axis.name),
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
        frame.ctx.font = `600 12px ${FONT}`;
        frame.ctx.fillText(`trial ${row.trial.id}: ${number(row.value, 5)}`, 4, HEIGHT - 4);
      }
      if (drag) drawDrag(frame, drag, axes, to);
    },
    [rows, columns, byTrial, axes, tint, drag],
  );
  const axisAt = (where: Where) => {
    const to = places(where.width, axes.length);
    const index = axes.findIndex((_, at) => Math.abs(to(at, 0)[0] - where.x) < NEAR);
    return index;
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
    const others = brushes.filter((brush) => brush.name !== axis.name);
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
    <div className="sideways" tabIndex={0}>
      <div style={{ minWidth: 2 * SIDE + (axes.length - 1) * LEAST }}>
        <Canvas
          name="Hyperparameters and metric of each trial, one line per trial; the table below shows the same data"
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
      </div>
    </div>
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

/** The brush between two heights on an axis; on a categorical axis, the kinds between them. */
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
    const [x, y] = to(at, place);
    if (measured && open) {
      const [before, height] = to(at - 1, columns[at - 1]![row]!);
      const middle = (before + x) / 2;
      ctx.bezierCurveTo(middle, height, middle, y, x, y);
    } else if (measured) ctx.moveTo(x, y);
    open = measured;
  });
  ctx.strokeStyle = tint;
  ctx.lineWidth = width;
  ctx.setLineDash(ending === "stopped" ? [6, 3] : ending === "failed" ? [2, 4] : []);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** The last axis has its numbers at the right, where no lines cross them. */
function drawAxis({ ctx, height }: Frame, axis: Axis, x: number, room: number, isLast: boolean, brush?: Brush) {
  ctx.strokeStyle = css("--line-2");
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x, TOP);
  ctx.lineTo(x, height - BOTTOM);
  ctx.stroke();
  ctx.fillStyle = css("--ink");
  ctx.font = `550 12px ${FONT}`;
  ctx.textAlign = "center";
  ctx.fillText(cut(ctx, axis.name, room), x, 16);
  ctx.font = `450 11px ${FONT}`;
  ctx.fillStyle = css("--ink-3");
  ctx.fillText(axis.scale ?? "", x, 31);
  ctx.textAlign = isLast ? "left" : "right";
  for (const [place, text] of ticksOf(axis)) {
    const y = TOP + (1 - place) * (height - TOP - BOTTOM);
    const shown = cut(ctx, text.replace(/^"|"$/g, ""), SIDE - 12);
    const wide = ctx.measureText(shown).width;
    ctx.fillStyle = css("--surface");
    ctx.globalAlpha = 0.8;
    ctx.fillRect(isLast ? x + 3 : x - wide - 9, y - 7, wide + 6, 14);
    ctx.globalAlpha = 1;
    ctx.fillStyle = css("--ink-2");
    ctx.fillText(shown, isLast ? x + 6 : x - 6, y + 4);
  }
  if (!brush) return;
  const [from, to] = [brush.from, brush.to].map((value) => TOP + (1 - share(axis, value)) * (height - TOP - BOTTOM));
  ctx.fillStyle = css("--accent");
  ctx.globalAlpha = 0.35;
  ctx.fillRect(x - 6, to!, 12, Math.max(3, from! - to!));
  ctx.globalAlpha = 1;
}

/** Shortens a name to the available room but keeps its end, which says more than its middle. */
function cut(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let length = text.length - 1;
  while (length > 2 && ctx.measureText(`…${text.slice(-length)}`).width > room) length--;
  return `…${text.slice(-length)}`;
}

function drawDrag({ ctx, height }: Frame, drag: Drag, axes: Axis[], to: To) {
  ctx.fillStyle = css("--accent");
  ctx.globalAlpha = 0.4;
  if (drag.kind === "brush") ctx.fillRect(to(drag.axis, 0)[0] - 6, Math.min(drag.from, drag.to), 12, Math.abs(drag.to - drag.from));
  else ctx.fillRect(drag.to - 1, TOP, 2, height - TOP - BOTTOM);
  ctx.globalAlpha = 1;
  if (drag.kind === "move") ctx.fillText(axes[drag.axis]!.name, drag.to + 6, TOP + 12);
}
