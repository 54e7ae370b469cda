/** When each trial began and ended: one bar per trial, in the colour of its state. */

import { useCallback, useMemo } from "react";

import type { Trial } from "../../api/types";
import { duration, many, stateName } from "../../parts/format";
import { light } from "../light";
import { stateTint } from "../looks";
import { FONT } from "../paint";
import { css } from "../theme";
import { Canvas, type Frame, type Where } from "./canvas";
import type { Ending } from "./rows";

const [LEFT, RIGHT, TOP, FOOT, MOST_PX, ROW_PX] = [52, 14, 4, 22, 420, 16];
const TICKS = 6;

interface Bar {
  id: number;
  from: number;
  to: number;
  tint: string;
  words: string;
}

/** `start`: start of the experiment, in milliseconds since 1970. */
export function Timeline({
  trials,
  endings,
  start,
  onOpen,
}: {
  trials: Trial[];
  endings: Map<number, Ending>;
  start: number;
  onOpen: (trial: number) => void;
}) {
  const bars = useMemo(() => barsOf(trials, endings, start), [trials, endings, start]);
  const last = bars.reduce((most, bar) => Math.max(most, bar.to), 1);
  const height = Math.min(MOST_PX, bars.length * ROW_PX + TOP + FOOT);
  const row = (height - TOP - FOOT) / Math.max(1, bars.length);
  const across = useCallback((seconds: number, width: number) => LEFT + (seconds / last) * (width - LEFT - RIGHT), [last]);
  const draw = useCallback(
    (frame: Frame) => {
      scale(frame, last, height, (seconds) => across(seconds, frame.width));
      const { ctx, width } = frame;
      const every = Math.ceil(11 / row);
      ctx.textBaseline = "middle";
      bars.forEach((trialBar, at) => {
        bar(ctx, trialBar, at, row, (seconds) => across(seconds, width));
        if (at % every) return;
        ctx.fillStyle = css("--ink-3");
        ctx.textAlign = "right";
        ctx.fillText(String(trialBar.id), LEFT - 8, TOP + (at + 0.5) * row, LEFT - 10);
      });
      ctx.textBaseline = "alphabetic";
    },
    [bars, row, height, last, across],
  );
  const above = useCallback(
    ({ ctx, width }: Frame, lit: number | null) => {
      const at = bars.findIndex((bar) => bar.id === lit);
      const bar = bars[at];
      if (!bar) return;
      ctx.strokeStyle = css("--ink");
      ctx.lineWidth = 1.5;
      ctx.strokeRect(across(bar.from, width), TOP + at * row, Math.max(2, across(bar.to, width) - across(bar.from, width)), row);
      ctx.fillStyle = css("--ink");
      ctx.font = `550 11.5px ${FONT}`;
      ctx.textAlign = "right";
      ctx.fillText(bar.words, width - RIGHT, height - 5);
    },
    [bars, row, height, across],
  );
  const under = (where: Where) => bars[Math.floor((where.y - TOP) / row)];
  return (
    <Canvas
      name={`When each of ${many(bars.length, "trial")} began and ended: ${bars
        .slice(0, 20)
        .map((bar) => bar.words)
        .join("; ")}`}
      height={height}
      draw={draw}
      above={above}
      onMove={(where) => light(under(where)?.id ?? null)}
      onLeave={() => light(null)}
      onUp={(where) => {
        const bar = under(where);
        if (bar) onOpen(bar.id);
      }}
    />
  );
}

function barsOf(trials: Trial[], endings: Map<number, Ending>, start: number): Bar[] {
  const now = Date.now();
  return [...trials]
    .sort((a, b) => a.id - b.id)
    .map((trial) => {
      const state = endings.get(trial.id) === "stopped" ? "STOPPED" : stateName(trial.state);
      const [from, to] = [(Date.parse(trial.startTime) - start) / 1000, ((trial.endTime ? Date.parse(trial.endTime) : now) - start) / 1000];
      const word = state === "STOPPED" ? "stopped early" : state.toLowerCase();
      return { id: trial.id, from, to, tint: stateTint(state), words: `trial ${trial.id} ${word} after ${duration(to - from)}` };
    });
}

function bar(ctx: CanvasRenderingContext2D, trial: Bar, at: number, row: number, across: (seconds: number) => number) {
  const thick = Math.max(1, Math.min(10, row * 0.7));
  ctx.fillStyle = css(trial.tint);
  ctx.beginPath();
  ctx.roundRect(
    across(trial.from),
    TOP + (at + 0.5) * row - thick / 2,
    Math.max(2, across(trial.to) - across(trial.from)),
    thick,
    Math.min(3, thick / 2),
  );
  ctx.fill();
}

function scale({ ctx, width }: Frame, last: number, height: number, across: (seconds: number) => number) {
  ctx.font = `11px ${FONT}`;
  ctx.strokeStyle = css("--grid");
  ctx.textAlign = "center";
  for (let at = 0; at <= TICKS; at++) {
    const seconds = (last * at) / TICKS;
    ctx.beginPath();
    ctx.moveTo(across(seconds), TOP);
    ctx.lineTo(across(seconds), height - FOOT);
    ctx.stroke();
    ctx.fillStyle = css("--ink-3");
    ctx.fillText(at ? duration(seconds) : "start", Math.min(across(seconds), width - 30), height - 6, 80);
  }
}
