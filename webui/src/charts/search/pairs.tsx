/** Two hyperparameters against each other, coloured by the metric or its rank; and how it may run between the trials. */

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
  contour: boolean;
  tint: (row: Row) => number;
  onPair: (pair: [string, string]) => void;
  onOpen: (row: Row) => void;
}

export function Pairs({ rows, axes, pair, contour, tint, onPair, onOpen }: Props) {
  const [x, y] = pair.map((name) => axes.find((one) => one.name === name));
  const colour = useCallback((row: Row) => ramp(tint(row)), [tint]);
  const cells = useMemo(() => (contour && x && y ? surface(rows, x, y, tint) : null), [contour, rows, x, y, tint]);
  const ground = useCallback(
    ({ ctx }: Frame, at: (x: number, y: number) => [number, number]) => {
      if (!cells) return;
      ctx.globalAlpha = 0.45;
      const [[left, bottom], [right, top]] = [at(0, 0), at(1, 1)];
      const [wide, high] = [(right - left) / CELLS, (bottom - top) / CELLS];
      cells.forEach((share, cell) => {
        ctx.fillStyle = ramp(Math.round(share * 12) / 12);
        ctx.fillRect(left + (cell % CELLS) * wide, bottom - (Math.floor(cell / CELLS) + 1) * high, wide + 0.6, high + 0.6);
      });
      ctx.globalAlpha = 1;
    },
    [cells],
  );
  const tiles = axes.flatMap((one, at) => axes.slice(at + 1).map((other) => [one, other] as const));
  return (
    <div className="pairs">
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
          {tiles.map(([one, other]) => (
            <li key={`${one.name} ${other.name}`}>
              <button
                type="button"
                className="tile"
                aria-pressed={pair[0] === one.name && pair[1] === other.name}
                onClick={() => onPair([one.name, other.name])}
              >
                {one.name} × {other.name}
              </button>
              <Visible name={`${one.name} ${other.name}`} height={130}>
                {() => (
                  <Dots
                    small
                    name={`${other.name} over ${one.name}`}
                    rows={rows}
                    x={one}
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

/** Between the trials the mean of all, each weighted by the inverse fourth power of its distance (D. Shepard, 1968). */
function surface(rows: Row[], x: Axis, y: Axis, tint: (row: Row) => number): number[] {
  const step = Math.ceil(rows.length / NEIGHBOURS);
  const known = rows
    .filter((_, at) => at % step === 0)
    .flatMap((row) => {
      const [left, up] = [placeOf(x, row), placeOf(y, row)];
      return left === null || up === null ? [] : [{ left, up, share: tint(row) }];
    });
  if (!known.length) return [];
  return Array.from({ length: CELLS * CELLS }, (_, cell) => {
    const [left, up] = [((cell % CELLS) + 0.5) / CELLS, (Math.floor(cell / CELLS) + 0.5) / CELLS];
    let [sum, total] = [0, 0];
    for (const one of known) {
      const weight = 1 / (((one.left - left) ** 2 + (one.up - up) ** 2) ** 2 + 1e-7);
      sum += weight * one.share;
      total += weight;
    }
    return sum / total;
  });
}
