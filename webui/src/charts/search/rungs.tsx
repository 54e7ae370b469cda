/** The rungs of a halving search: which trials were promoted or stopped, and at which value. */

import { X } from "lucide-react";
import { useCallback, useMemo, useState } from "react";

import { many, nth, number } from "../../parts/format";
import { Segments } from "../../ui/button";
import { Card } from "../../ui/card";
import type { Chosen } from "../colours";
import { tickText } from "../export";
import { light } from "../light";
import type { Looks } from "../looks";
import { FONT } from "../paint";
import { inked } from "../ramp";
import { css } from "../theme";
import { Canvas, type Frame, type Where } from "./canvas";
import type { Ending } from "./rows";
import { stacked } from "./stacks";

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
const WORDS = { promoted: "went on after", stopped: "stopped after", waits: "waits at", left: "failed after", top: "reached" };
const ENDINGS: Record<Entry["verdict"], Ending> = { promoted: "", stopped: "stopped", waits: "", left: "failed", top: "" };

/**
 * The latest decision about each trial: the one at the highest rung where it has a result. `unit` is the unit of the
 * rungs' lengths.
 */
export function decisions(brackets: Brackets, unit = ""): Map<number, Decision> {
  const byTrial = new Map<number, Decision>();
  for (const bracket of brackets)
    for (const rung of bracket)
      rung.entries.forEach((entry, place) => {
        const length = `${number(rung.length)}${unit && ` ${unit}`}`;
        const text =
          entry.verdict === "left" && entry.metric === null
            ? `failed before ${length}`
            : `${WORDS[entry.verdict]} ${length}, ${nth(place + 1)} of ${number(rung.count)}`;
        byTrial.set(entry.trialId, { text, verdict: entry.verdict, ending: ENDINGS[entry.verdict] });
      });
  return byTrial;
}

const [ROW, LEFT, RIGHT, FOOT] = [54, 62, 12, 14];
const [DOT, GAP] = [3.2, 7];
/** Height of the area for a rung's dots, above its line. */
const HIGH = 36;

interface Spot extends Entry {
  x: number;
  y: number;
}

interface Shown {
  metric: string;
  looks: Looks;
  chosen: Chosen;
  onOpen: (trial: number) => void;
}

export function Rungs({ brackets, ...shown }: Shown & { brackets: Brackets }) {
  const [chosen, setChosen] = useState("0");
  const rungs = brackets[Number(chosen)] ?? brackets[0]!;
  return (
    <Card
      title="Rungs"
      more={
        <>
          <span className="cut ink3 sm" title={`${shown.metric} at each rung`}>
            {brackets.length > 1 ? "bracket" : `${shown.metric} at each rung`}
          </span>
          {brackets.length > 1 && (
            <Segments
              small
              name="Bracket"
              value={chosen}
              options={brackets.map((_, at) => [String(at), String(at + 1)] as const)}
              onChange={setChosen}
            />
          )}
        </>
      }
      flush
    >
      <Bracket rungs={rungs} {...shown} />
      <ul className="chart-foot">
        <li>
          <i className="disk" /> went on
        </li>
        <li>
          <i className="disk ring" /> stopped early
        </li>
        <li>
          <i className="needed" /> needed to go on
        </li>
        {rungs.some((rung) => rung.entries.some((entry) => entry.verdict === "left")) && (
          <li>
            <X className="s bad" /> failed
          </li>
        )}
      </ul>
      {/* A table never becomes narrower than its text. */}
      <div className="vh">
        <table>
          <caption>Rungs</caption>
          <tbody>
            {rungs.map((rung, at) => (
              <tr key={at}>
                <td>{summary(rung)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** A rung as text. */
export function summary(rung: Rung): string {
  const count = (verdict: Entry["verdict"]) => rung.entries.filter((entry) => entry.verdict === verdict).length;
  const last = needed(rung);
  const way = rung.waiting > 0 ? `, ${rung.waiting} on their way` : "";
  const to = last === null ? "" : ` (to ${number(last, 4)})`;
  return `${number(rung.length)}: ${rung.count} results, ${count("promoted")} went on${to}, ${count("stopped")} stopped early${way}`;
}

/** The worst value that was promoted; entries are sorted best first. */
const needed = (rung: Rung): number | null => rung.entries.filter((entry) => entry.verdict === "promoted").at(-1)?.metric ?? null;

const isOn = (entry: Entry) => entry.verdict === "promoted" || entry.verdict === "top";

function Bracket({ rungs, metric, looks, chosen, onOpen }: Shown & { rungs: Rung[] }) {
  const height = rungs.length * ROW + FOOT;
  const scale = useMemo(() => {
    const values = rungs.flatMap((rung) => rung.entries.map((metric) => metric.metric)).filter((metric) => metric !== null);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const more = high > low ? (high - low) * 0.04 : Math.abs(low) * 0.05 || 1;
    return { low: low - more, high: high + more };
  }, [rungs]);
  const across = useCallback(
    (value: number, width: number) => LEFT + ((value - scale.low) / (scale.high - scale.low)) * (width - LEFT - RIGHT),
    [scale],
  );
  const spots = useCallback(
    (width: number): Spot[] =>
      rungs.flatMap((rung, at) => {
        const measured = rung.entries.filter((entry) => entry.metric !== null);
        const xs = measured.map((entry) => across(entry.metric!, width));
        const rows = stacked(xs, GAP, HIGH);
        return measured.map((entry, place) => ({ ...entry, x: xs[place]!, y: at * ROW + HIGH + 8 - rows[place]! }));
      }),
    [rungs, across],
  );
  const draw = useCallback(
    ({ ctx, width }: Frame) => {
      rungs.forEach((rung, at) => ground(ctx, rung, at * ROW, width, (value) => across(value, width)));
      // Chosen trials are drawn above the others.
      const all = spots(width).sort((a, b) => Number(chosen.has(a.trialId)) - Number(chosen.has(b.trialId)));
      for (const spot of all) dot(ctx, spot, chosen.has(spot.trialId) ? inked(looks.get(spot.trialId)?.colour ?? "--accent") : null, DOT);
    },
    [rungs, across, spots, looks, chosen],
  );
  const above = useCallback(
    ({ ctx, width }: Frame, lit: number | null) => {
      const mine = spots(width).filter((spot) => spot.trialId === lit);
      ctx.strokeStyle = css("--ink-3");
      ctx.beginPath();
      mine.forEach((spot, at) => ctx[at ? "lineTo" : "moveTo"](spot.x, spot.y));
      ctx.stroke();
      for (const spot of mine) dot(ctx, spot, css("--ink"), DOT + 1.6);
      const last = mine.at(-1);
      if (!last) return;
      ctx.font = `600 11.5px ${FONT}`;
      ctx.fillStyle = css("--ink");
      ctx.textAlign = "right";
      ctx.fillText(`${last.trialId}: ${number(last.metric, 4)}`, width - RIGHT, 12);
    },
    [spots],
  );
  const under = (where: Where) => {
    const all = spots(where.width).map((spot) => ({ spot, away: Math.hypot(spot.x - where.x, spot.y - where.y) }));
    const nearest = all.reduce((best, now) => (now.away < best.away ? now : best), { spot: null as Spot | null, away: 8 });
    return nearest.spot;
  };
  return (
    <Canvas
      name={`${metric} of the trials on each rung: ${rungs.map(summary).join("; ")}`}
      height={height}
      draw={draw}
      above={above}
      onMove={(where) => light(under(where)?.trialId ?? null)}
      onLeave={() => light(null)}
      onUp={(where) => {
        const spot = under(where);
        if (spot) onOpen(spot.trialId);
      }}
    />
  );
}

function ground(ctx: CanvasRenderingContext2D, rung: Rung, top: number, width: number, across: (value: number) => number) {
  const line = top + HIGH + 12;
  ctx.textAlign = "left";
  ctx.fillStyle = css("--ink");
  ctx.font = `600 11.5px ${FONT}`;
  ctx.fillText(tickText(rung.length), 12, top + HIGH - 4);
  ctx.fillStyle = css("--ink-3");
  ctx.font = `450 10.5px ${FONT}`;
  ctx.fillText(many(rung.count, "trial"), 12, top + HIGH + 9, LEFT - 14);
  ctx.strokeStyle = css("--line-2");
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(LEFT, line);
  ctx.lineTo(width - RIGHT, line);
  ctx.stroke();
  const least = needed(rung);
  if (least === null) return;
  ctx.strokeStyle = css("--accent");
  ctx.setLineDash([2.5, 2.5]);
  ctx.lineWidth = 1.3;
  ctx.beginPath();
  ctx.moveTo(across(least), top + 8);
  ctx.lineTo(across(least), line);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.textAlign = "center";
  ctx.fillText(number(least, 3), Math.min(width - 22, Math.max(LEFT + 14, across(least))), line + 11);
}

/** A disk if promoted, a ring if stopped or waiting, a cross if it failed. */
function dot(ctx: CanvasRenderingContext2D, spot: Spot, tint: string | null, size: number) {
  ctx.beginPath();
  ctx.lineWidth = 1.3;
  if (spot.verdict === "left") {
    ctx.strokeStyle = tint ?? css("--error");
    ctx.moveTo(spot.x - size, spot.y - size);
    ctx.lineTo(spot.x + size, spot.y + size);
    ctx.moveTo(spot.x + size, spot.y - size);
    ctx.lineTo(spot.x - size, spot.y + size);
    ctx.stroke();
    return;
  }
  ctx.arc(spot.x, spot.y, size, 0, 7);
  ctx.fillStyle = isOn(spot) ? (tint ?? css("--accent")) : css("--surface");
  ctx.strokeStyle = tint ?? css(isOn(spot) ? "--accent" : "--ink-3");
  ctx.fill();
  ctx.stroke();
}
