/** Trials as dots over two axes. */

import { useCallback } from "react";

import { css } from "../theme";
import { light, useLit } from "../light";
import { type Axis, placeOf, ticksOf } from "./axes";
import { Canvas, type Frame, mark, type Where } from "./canvas";
import type { Row } from "./rows";

const PAD = { left: 58, right: 14, top: 10, bottom: 34 };
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
  /** Drawn below the dots: given places from 0 to 1, where they are on the canvas. */
  ground?: (frame: Frame, at: (x: number, y: number) => [number, number]) => void;
}

export function Dots({ name, rows, x, y, tint, onOpen, height = 240, small = false, ground }: DotsProps) {
  const lit = useLit();
  const place = useCallback(
    (row: Row, width: number): [number, number] | null => {
      const [left, up] = [placeOf(x, row), placeOf(y, row)];
      return left === null || up === null ? null : at(width, height)(left, up);
    },
    [x, y, height],
  );
  const draw = useCallback(
    (frame: Frame) => {
      ground?.(frame, at(frame.width, height));
      axes(frame, x, y, small);
      for (const row of rows) {
        const found = place(row, frame.width);
        if (found) mark(frame.ctx, ...found, small || rows.length > 500 ? 2.2 : 3.6, tint(row), row.ending);
      }
    },
    [rows, x, y, tint, place, height, small, ground],
  );
  const above = useCallback(
    ({ ctx, width }: Frame) => {
      const row = rows.find((one) => one.trial.id === lit);
      const found = row && place(row, width);
      if (!found) return;
      mark(ctx, ...found, 6, tint(row), row.ending);
      ctx.strokeStyle = css("--ink");
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(...found, 8, 0, 7);
      ctx.stroke();
    },
    [rows, lit, place, tint],
  );
  const under = (where: Where): Row | null => {
    let [best, reach]: [Row | null, number] = [null, REACH];
    for (const row of rows) {
      const found = place(row, where.width);
      const away = found ? Math.hypot(found[0] - where.x, found[1] - where.y) : reach;
      if (away < reach) [best, reach] = [row, away];
    }
    return best;
  };
  const known = lit !== null && rows.some((row) => row.trial.id === lit);
  return (
    <Canvas
      name={name} height={height} draw={draw} above={above} faint={known} cursor={known ? "pointer" : "default"}
      onMove={(where) => light(under(where)?.trial.id ?? null)}
      onLeave={() => light(null)}
      onUp={(where) => {
        const row = under(where);
        if (row) onOpen(row);
      }}
    />
  );
}

const at = (width: number, height: number) => (x: number, y: number): [number, number] => [
  PAD.left + x * (width - PAD.left - PAD.right),
  height - PAD.bottom - y * (height - PAD.top - PAD.bottom),
];

function axes({ ctx, width, height }: Frame, x: Axis, y: Axis, small: boolean) {
  const to = at(width, height);
  ctx.font = "11px system-ui, sans-serif";
  ctx.fillStyle = css("--soft");
  ctx.strokeStyle = css("--line");
  ctx.strokeRect(...to(0, 1), to(1, 0)[0] - to(0, 0)[0], to(0, 0)[1] - to(0, 1)[1]);
  ctx.textAlign = "center";
  for (const [place, text] of ticksOf(x)) ctx.fillText(text, Math.min(to(place, 0)[0], width - 16), to(0, 0)[1] + 13, 80);
  if (!small) ctx.fillText(x.name, to(0.5, 0)[0], height - 4);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const [place, text] of ticksOf(y)) ctx.fillText(text, PAD.left - 5, to(0, place)[1], PAD.left - 8);
  ctx.textBaseline = "alphabetic";
}
