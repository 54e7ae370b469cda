/** Below a chart: the legend of its lines, and notes. */

import type { ReactNode } from "react";

import { number } from "../parts/format";
import { type Line, nearestOf } from "./lines";
import { styled } from "./ramp";

export function Foot({
  lines,
  axis,
  cursor,
  values,
  clip,
  below,
}: {
  lines: Line[];
  axis: string;
  cursor: number | null;
  /** Shows each line's value at the cross hair, or its latest value. */
  values: boolean;
  clip: boolean;
  below?: ReactNode;
}) {
  const broken = lines.reduce((sum, line) => sum + line.nonFinite, 0);
  const notes = [
    broken > 0 && (broken === 1 ? "1 value was not a number" : `${broken.toLocaleString("en")} values were not numbers`),
    clip && "outliers are cut",
    lines.some((line) => !line.monotone) && `${axis} goes back and forth`,
  ].filter(Boolean);
  if (!values && !below && !notes.length) return null;
  return (
    <ul className="chart-foot">
      {values && lines.map((line) => <Entry key={line.key} line={line} cursor={cursor} />)}
      {below}
      {notes.map((note) => (
        <li key={String(note)} className="ink3">
          {note}
        </li>
      ))}
    </ul>
  );
}

export const Stroke = ({ colour, dash = [] }: { colour: string; dash?: number[] }) => (
  <i className={`stroke ${dash.length ? "dashed" : ""}`} style={{ borderColor: styled(colour) }} aria-hidden />
);

function Entry({ line, cursor }: { line: Line; cursor: number | null }) {
  const at = cursor === null ? line.from.last.findLastIndex((y) => y !== null) : nearestOf(line, cursor);
  const value = line.ys[at];
  const raw = line.pale?.[at];
  return (
    <li>
      <Stroke colour={line.colour} dash={line.dash} /> {line.label}{" "}
      <output>{value === null || value === undefined ? "" : number(value, 6)}</output>
      {typeof raw === "number" && <span className="ink3">raw {number(raw, 6)}</span>}
    </li>
  );
}
