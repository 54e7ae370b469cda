/** The values under the pointer: at most twelve, plus the highlighted line. */

import { useSyncExternalStore } from "react";

import { number } from "../parts/format";
import { useLit } from "./light";
import { axisName, type Line, nearestOf, xText } from "./lines";
import { styled } from "./ramp";

const MOST = 12;

export interface Value {
  line: Line;
  y: number;
}

/** The lines in front, best first if that is known, otherwise from top to bottom. */
export function valuesAt(lines: Line[], x: number, smaller: boolean | null, lit: number | null): Value[] {
  const front = lines.filter((line) => line.front || line.trial === lit);
  const values = front.flatMap((line): Value[] => {
    const at = nearestOf(line, x);
    const y = line.ys[at];
    const last = line.xs[line.xs.length - 1]!;
    return y === null || y === undefined || (line.monotone && (x > last || x < line.xs[0]!) && line.xs.length > 1) ? [] : [{ line, y }];
  });
  values.sort((a, b) => (smaller ? a.y - b.y : b.y - a.y));
  const shown = values.slice(0, MOST);
  const mine = values.find(({ line }) => line.trial === lit);
  return mine && !shown.includes(mine) ? [...shown.slice(0, MOST - 1), mine] : shown;
}

const whole = (axis: string, x: number) =>
  axis === "batches" ? `batch ${Math.round(x).toLocaleString("en")}` : `${axisName(axis)} ${xText(axis, Number(x.toPrecision(6)))}`;

/** Position of a chart's tooltip, in the pixels of the drawing. */
export interface At {
  left: number;
  top: number;
  x: number;
  width: number;
}

/** The pointer's position in one chart, sent at most once per frame and only to the components that show it. */
export function pointerOf() {
  let [now, next]: (At | null)[] = [null, null];
  let due = false;
  const watchers = new Set<() => void>();
  const turn = () => {
    due = false;
    if (now === next) return;
    now = next ?? null;
    watchers.forEach((tell) => tell());
  };
  return {
    put: (at: At | null) => {
      next = at;
      if (!due) requestAnimationFrame(turn);
      due = true;
    },
    get: () => now ?? null,
    watch: (tell: () => void) => {
      watchers.add(tell);
      return () => void watchers.delete(tell);
    },
  };
}
export type Pointer = ReturnType<typeof pointerOf>;

const [ROOM, AWAY] = [190, 14];

interface TipProps {
  lines: Line[];
  axis: string;
  smaller: boolean | null;
}

export function Tip({ pointer, ...rest }: TipProps & { pointer: Pointer }) {
  const at = useSyncExternalStore(pointer.watch, pointer.get);
  return at && <TipBox at={at} {...rest} />;
}

function TipBox({ at, lines, axis, smaller }: TipProps & { at: At }) {
  const lit = useLit();
  const values = valuesAt(lines, at.x, smaller, lit);
  const others = lines.filter((line) => !line.front).length;
  const side = at.left + ROOM + AWAY > at.width ? { right: `calc(100% - ${at.left - AWAY}px)` } : { left: at.left + AWAY };
  return (
    <div className="chart-tip" style={{ ...side, top: Math.max(0, at.top - 20) }}>
      <div className="h">{whole(axis, at.x)}</div>
      {values.map(({ line, y }) => (
        <div key={line.key} className="r" data-lit={line.trial === lit || undefined}>
          <i className="sw" style={{ background: styled(line.colour) }} /> <span>{line.short}</span>
          {line.label.endsWith(line.group) && line.short !== line.group && <span className="ink3">{line.group}</span>}
          <b>{number(y, 5)}</b>
        </div>
      ))}
      {!values.length && <div className="r ink3">nothing was reported here</div>}
      {others > 0 && <div className="h">{others === 1 ? "and one other" : `and ${others.toLocaleString("en")} others, in grey`}</div>}
    </div>
  );
}
