/** The rungs of a halving search: who was promoted, who was stopped, and at which value. */

import { useCallback, useMemo } from "react";

import { colour, number } from "../../parts/format";
import { light } from "../light";
import { css } from "../theme";
import { axisOf, share } from "./axes";
import { Canvas, type Frame, mark, type Where } from "./canvas";
import type { Ending } from "./rows";

export interface Entry {
  trialId: number;
  metric: number | null;
  verdict: "promoted" | "stopped" | "waits" | "left" | "top";
}
export interface Rung {
  length: number;
  waiting: number;
  count: number;
  entries: Entry[];
}
export type Brackets = Rung[][];

export interface Decision {
  text: string;
  verdict: Entry["verdict"];
  ending: Ending;
}
const WORDS = { promoted: "went on from", stopped: "stopped at", waits: "waits at", left: "gave up at", top: "reached" };
const ENDINGS: Record<Entry["verdict"], Ending> = { promoted: "", stopped: "stopped", waits: "", left: "failed", top: "" };

/** What the search decided of each trial last: at the highest rung where it has a result. */
export function decisions(brackets: Brackets): Map<number, Decision> {
  const found = new Map<number, Decision>();
  for (const bracket of brackets)
    bracket.forEach((rung, at) =>
      rung.entries.forEach((entry, place) => {
        const text = `${WORDS[entry.verdict]} ${rung.length} (rung ${at + 1} of ${bracket.length}), ${place + 1} of ${rung.count}`;
        found.set(entry.trialId, { text, verdict: entry.verdict, ending: ENDINGS[entry.verdict] });
      }),
    );
  return found;
}

const [HEIGHT, LEFT, BOTTOM, TOP] = [220, 56, 34, 14];
const SHAPES = { promoted: "", top: "", waits: "stopped", stopped: "stopped", left: "failed" } as const;

export function Rungs({ brackets, metric, onOpen }: { brackets: Brackets; metric: string; onOpen: (trial: number) => void }) {
  return (
    <div className="tiles">
      {brackets.map((bracket, at) => (
        <section key={at} aria-label={`Bracket ${at + 1}`}>
          <h3>{brackets.length > 1 ? `Bracket ${at + 1}` : "Rungs"}</h3>
          <Bracket rungs={bracket} metric={metric} onOpen={onOpen} />
          <ul className="plain soft">
            {bracket.map((rung, place) => {
              const count = (verdict: string) => rung.entries.filter((one) => one.verdict === verdict).length;
              const promoted = rung.entries.filter((one) => one.verdict === "promoted");
              const last = promoted.at(-1)?.metric;
              return (
                <li key={place}>
                  {number(rung.length)}: {rung.count} results, {count("promoted")} promoted
                  {typeof last === "number" ? ` (to ${number(last, 4)})` : ""}, {count("stopped")} stopped
                  {rung.waiting > 0 && `, ${rung.waiting} on their way`}
                </li>
              );
            })}
          </ul>
        </section>
      ))}
    </div>
  );
}

interface Dot extends Entry {
  rung: number;
}

function Bracket({ rungs, metric, onOpen }: { rungs: Rung[]; metric: string; onOpen: (trial: number) => void }) {
  const dots = useMemo(
    () => rungs.flatMap((rung, at) => rung.entries.filter((one) => one.metric !== null).map((one): Dot => ({ ...one, rung: at }))),
    [rungs],
  );
  const scale = useMemo(() => axisOf(metric, dots as never[], (row) => (row as unknown as Dot).metric), [dots, metric]);
  const place = useCallback(
    (dot: Dot, width: number): [number, number] => [
      LEFT + ((dot.rung + 0.5) * (width - LEFT - 10)) / rungs.length,
      HEIGHT - BOTTOM - share(scale, dot.metric!) * (HEIGHT - BOTTOM - TOP),
    ],
    [scale, rungs.length],
  );
  const draw = useCallback(
    ({ ctx, width }: Frame) => {
      ctx.font = "11px system-ui, sans-serif";
      ctx.fillStyle = css("--soft");
      ctx.textAlign = "center";
      rungs.forEach((rung, at) => ctx.fillText(number(rung.length), place({ rung: at, metric: scale.low } as Dot, width)[0], HEIGHT - 18));
      ctx.fillText("trained to", LEFT + (width - LEFT) / 2, HEIGHT - 4);
      ctx.textAlign = "right";
      for (const end of [scale.low, scale.high])
        ctx.fillText(number(end, 3), LEFT - 6, place({ rung: 0, metric: end } as Dot, width)[1] + 4);
      const key = (trial: number, rung: number) => `${trial} ${rung}`;
      const known = new Map(dots.map((dot) => [key(dot.trialId, dot.rung), dot]));
      for (const dot of dots) ladder(ctx, known.get(key(dot.trialId, dot.rung + 1)), dot, width, place);
      for (const dot of dots) mark(ctx, ...place(dot, width), 4, colour(dot.trialId), SHAPES[dot.verdict]);
    },
    [dots, rungs, place, scale],
  );
  const above = useCallback(
    ({ ctx, width }: Frame, lit: number | null) => {
      const mine = dots.filter((one) => one.trialId === lit);
      ctx.strokeStyle = css("--ink");
      ctx.lineWidth = 2;
      ctx.beginPath();
      mine.forEach((dot, at) => ctx[at ? "lineTo" : "moveTo"](...place(dot, width)));
      ctx.stroke();
      for (const dot of mine) mark(ctx, ...place(dot, width), 6, colour(dot.trialId), SHAPES[dot.verdict]);
      const last = mine.at(-1);
      ctx.fillStyle = css("--ink");
      ctx.font = "600 12px system-ui, sans-serif";
      if (last) ctx.fillText(`trial ${last.trialId} ${last.verdict} at ${number(last.metric, 5)}`, LEFT, 11);
    },
    [dots, place],
  );
  const under = (where: Where) =>
    dots.find((dot) => Math.hypot(place(dot, where.width)[0] - where.x, place(dot, where.width)[1] - where.y) < 8);
  return (
    <Canvas
      name={`${metric} of the trials on each rung; who went on, stopped or gave up is also in the table of trials`}
      height={HEIGHT}
      draw={draw}
      above={above}
      onMove={(where) => light(under(where)?.trialId ?? null)}
      onLeave={() => light(null)}
      onUp={(where) => {
        const found = under(where);
        if (found) onOpen(found.trialId);
      }}
    />
  );
}

function ladder(
  ctx: CanvasRenderingContext2D,
  next: Dot | undefined,
  dot: Dot,
  width: number,
  place: (dot: Dot, width: number) => [number, number],
) {
  if (!next) return;
  ctx.globalAlpha = 0.35;
  ctx.strokeStyle = colour(dot.trialId);
  ctx.beginPath();
  ctx.moveTo(...place(dot, width));
  ctx.lineTo(...place(next, width));
  ctx.stroke();
  ctx.globalAlpha = 1;
}
