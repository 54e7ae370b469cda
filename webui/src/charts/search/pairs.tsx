/**
 * Two hyperparameters against each other, coloured by the metric or its rank, with an interpolated surface between the
 * trials.
 */

import { useCallback, useMemo } from "react";

import type { Axis } from "./axes";
import { placeOf } from "./axes";
import type { Frame } from "./canvas";
import { ramp } from "../ramp";
import { Dots } from "./dots";
import type { Row } from "./rows";
import { Visible } from "../visible";

const CELLS = 36;
const NEIGHBOURS = 400;

interface Props {
  rows: Row[];
  axes: Axis[];
  pair: [string, string];
  /** What is drawn below the points: the interpolated surface, or the mean of each cell. */
  ground: "" | "contour" | "cells";
  tint: (row: Row) => number;
  onPair: (pair: [string, string]) => void;
  onOpen: (row: Row) => void;
}

export function Pairs({ rows, axes, pair, ground: kind, tint, onPair, onOpen }: Props) {
  const [x, y] = pair.map((name) => axes.find((axis) => axis.name === name));
  const colour = useCallback((row: Row) => ramp(tint(row)), [tint]);
  const grid = useMemo(() => {
    if (!kind || !x || !y) return null;
    return kind === "cells"
      ? means(rows, x, y, tint)
      : { across: CELLS, up: CELLS, shares: surface(rows, x, y, tint), edge: 0.6, whole: true };
  }, [kind, rows, x, y, tint]);
  const ground = useCallback(
    ({ ctx }: Frame, at: (x: number, y: number) => [number, number]) => {
      if (!grid) return;
      ctx.globalAlpha = 0.45;
      const [[left, bottom], [right, top]] = [at(0, 0), at(1, 1)];
      const [wide, high] = [(right - left) / grid.across, (bottom - top) / grid.up];
      grid.shares.forEach((share, cell) => {
        if (share === null) return;
        ctx.fillStyle = ramp(grid.whole ? Math.round(share * 12) / 12 : share);
        const [column, row] = [cell % grid.across, Math.floor(cell / grid.across) + 1];
        ctx.fillRect(left + column * wide, bottom - row * high, wide + grid.edge, high + grid.edge);
      });
      ctx.globalAlpha = 1;
    },
    [grid],
  );
  const tiles = axes.flatMap((axis, at) => axes.slice(at + 1).map((other) => [axis, other] as const));
  return (
    <div className="pair-plots">
      {x && y && (
        <Dots
          name={`${y.name} over ${x.name}, coloured by the metric`}
          rows={rows}
          x={x}
          y={y}
          tint={colour}
          onOpen={onOpen}
          height={360}
          ground={ground}
        />
      )}
      {tiles.length > 1 && (
        <ul className="tiles" aria-label="Pairs of hyperparameters">
          {tiles.map(([axis, other]) => (
            <li key={`${axis.name} ${other.name}`}>
              <button
                type="button"
                className="tile"
                aria-pressed={pair[0] === axis.name && pair[1] === other.name}
                onClick={() => onPair([axis.name, other.name])}
              >
                {axis.name} × {other.name}
              </button>
              <Visible name={`${axis.name} ${other.name}`} height={130}>
                {() => (
                  <Dots
                    small
                    name={`${other.name} over ${axis.name}`}
                    rows={rows}
                    x={axis}
                    y={other}
                    tint={colour}
                    onOpen={onOpen}
                    height={130}
                  />
                )}
              </Visible>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface Grid {
  across: number;
  up: number;
  /** From the lower left, row by row; null for a cell without trials. */
  shares: (number | null)[];
  /** Added to the size of a cell, in pixels; a negative value leaves a gap. */
  edge: number;
  whole: boolean;
}

const MOST_CELLS = 8;
const cellsOf = (axis: Axis) => Math.min(MOST_CELLS, axis.kinds?.length ?? MOST_CELLS);

/** The mean of the trials in each cell. A cell is a pair of kinds, or an eighth of each axis. */
export function means(rows: Row[], x: Axis, y: Axis, tint: (row: Row) => number): Grid {
  const [across, up] = [cellsOf(x), cellsOf(y)];
  const sums = Array.from({ length: across * up }, () => ({ sum: 0, count: 0 }));
  const cellAt = (place: number, many: number) => Math.min(many - 1, Math.floor(place * many));
  for (const row of rows) {
    const [left, bottom] = [placeOf(x, row), placeOf(y, row)];
    if (left === null || bottom === null) continue;
    const cell = sums[cellAt(bottom, up) * across + cellAt(left, across)]!;
    cell.sum += tint(row);
    cell.count += 1;
  }
  return { across, up, shares: sums.map(({ sum, count }) => (count ? sum / count : null)), edge: -2, whole: false };
}

/** Between trials, the mean of all trials weighted by the inverse fourth power of their distance (D. Shepard, 1968). */
function surface(rows: Row[], x: Axis, y: Axis, tint: (row: Row) => number): number[] {
  const step = Math.ceil(rows.length / NEIGHBOURS);
  const points = rows
    .filter((_, at) => at % step === 0)
    .flatMap((row) => {
      const [left, up] = [placeOf(x, row), placeOf(y, row)];
      return left === null || up === null ? [] : [{ left, up, share: tint(row) }];
    });
  if (!points.length) return [];
  return Array.from({ length: CELLS * CELLS }, (_, cell) => {
    const [left, up] = [((cell % CELLS) + 0.5) / CELLS, (Math.floor(cell / CELLS) + 0.5) / CELLS];
    let [sum, total] = [0, 0];
    for (const point of points) {
      const weight = 1 / (((point.left - left) ** 2 + (point.up - up) ** 2) ** 2 + 1e-7);
      sum += weight * point.share;
      total += weight;
    }
    return sum / total;
  });
}
