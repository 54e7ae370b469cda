/** Trials as dots over two axes. */

import { useCallback, useMemo } from "react";

import { light } from "../light";
import { FONT } from "../paint";
import { css } from "../theme";
import { apart, type Axis, ticksOf } from "./axes";
import { Canvas, type Frame, mark, type Where } from "./canvas";
import { nearestSpot, placesOn } from "./near";
import type { Row } from "./rows";

const PAD = { left: 52, right: 14, top: 22, bottom: 34 };
const REACH = 10;

export interface DotsProps {
  name: string;
  rows: Row[];
  x: Axis;
  y: Axis;
  tint: (row: Row) => string;
  onOpen: (row: Row) => void;
  height?: number;
  small?: boolean;
  /** Draws below the dots; `at` maps positions from 0 to 1 to the canvas. */
  ground?: (frame: Frame, at: (x: number, y: number) => [number, number]) => void;
}

export function Dots({ name, rows, x, y, tint, onOpen, height = 240, small = false, ground }: DotsProps) {
  const [xs, ys] = useMemo(() => placesOn([x, y], rows) as [Float64Array, Float64Array], [x, y, rows]);
  const byTrial = useMemo(() => new Map(rows.map((row, at) => [row.trial.id, at])), [rows]);
  const spot = useCallback((index: number, width: number) => at(width, height)(xs[index]!, ys[index]!), [xs, ys, height]);
  const draw = useCallback(
    (frame: Frame) => {
      ground?.(frame, at(frame.width, height));
      axes(frame, x, y, small);
      const size = small || rows.length > 500 ? 2.2 : 3.6;
      rows.forEach((row, index) => {
        const place = spot(index, frame.width);
        if (!place.some(Number.isNaN)) mark(frame.ctx, ...place, size, tint(row), row.ending);
      });
    },
    [rows, x, y, tint, spot, height, small, ground],
  );
  const above = useCallback(
    ({ ctx, width }: Frame, lit: number | null) => {
      const index = byTrial.get(lit ?? NaN);
      if (index === undefined) return;
      const place = spot(index, width);
      if (place.some(Number.isNaN)) return;
      mark(ctx, ...place, 6, tint(rows[index]!), rows[index]!.ending);
      ctx.strokeStyle = css("--ink");
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(...place, 8, 0, 7);
      ctx.stroke();
    },
    [rows, byTrial, spot, tint],
  );
  const under = ({ x, y, width }: Where): Row | undefined => {
    const [[left, bottom], [right, top]] = [at(width, height)(0, 0), at(width, height)(1, 1)];
    return rows[nearestSpot(xs, ys, [left, right], [bottom, top], x, y, REACH)];
  };
  const isShown = useCallback((lit: number | null) => byTrial.has(lit ?? NaN), [byTrial]);
  const cursor = useCallback((lit: number | null) => (isShown(lit) ? "pointer" : "default"), [isShown]);
  return (
    <Canvas
      name={name}
      height={height}
      draw={draw}
      above={above}
      faint={isShown}
      cursor={cursor}
      onMove={(where) => light(under(where)?.trial.id ?? null)}
      onLeave={() => light(null)}
      onUp={(where) => {
        const row = under(where);
        if (row) onOpen(row);
      }}
    />
  );
}

const at =
  (width: number, height: number) =>
  (x: number, y: number): [number, number] => [
    PAD.left + x * (width - PAD.left - PAD.right),
    height - PAD.bottom - y * (height - PAD.top - PAD.bottom),
  ];

function axes({ ctx, width, height }: Frame, x: Axis, y: Axis, small: boolean) {
  const to = at(width, height);
  const foot = to(0, 0)[1];
  ctx.font = `11px ${FONT}`;
  ctx.lineWidth = 1;
  ctx.strokeStyle = css("--grid");
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const [place, text] of small ? ends(ticksOf(y)) : ticksOf(y)) {
    const top = to(0, place)[1];
    ctx.beginPath();
    ctx.moveTo(PAD.left, top);
    ctx.lineTo(width - PAD.right, top);
    ctx.stroke();
    ctx.fillStyle = css("--ink-3");
    ctx.fillText(text, PAD.left - 6, top, PAD.left - 8);
  }
  ctx.textBaseline = "alphabetic";
  ctx.strokeStyle = css("--line-2");
  ctx.beginPath();
  ctx.moveTo(PAD.left, foot);
  ctx.lineTo(width - PAD.right, foot);
  ctx.stroke();
  ctx.fillStyle = css("--ink-3");
  ctx.textAlign = "center";
  const labels = (small ? ends(ticksOf(x)) : ticksOf(x)).map(([place, text]) => {
    const half = ctx.measureText(text).width / 2;
    return { text, half, middle: Math.max(PAD.left + half - 8, Math.min(to(place, 0)[0], width - 4 - half)) };
  });
  for (const { text, middle } of apart(labels)) ctx.fillText(text, middle, foot + 14, 90);
  if (small) return;
  ctx.fillStyle = css("--ink-2");
  ctx.fillText(x.scale && x.scale !== "linear" ? `${x.name} (${x.scale})` : x.name, to(0.5, 0)[0], height - 4, width - PAD.left);
  ctx.textAlign = "left";
  ctx.fillText(y.name, 4, 11, width - 10);
}

const ends = (ticks: [number, string][]) => (ticks.length > 2 ? [ticks[0]!, ticks[ticks.length - 1]!] : ticks);
