/**
 * The drawing itself. uPlot draws axes, zoom and cross hair; we draw the lines, so that each can have its own x, a
 * band, gaps and an end mark.
 */

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { duration } from "../parts/format";
import { tickText } from "./export";
import { light, lighted, onLit } from "./light";
import { type Extent, type Line, nearestOf, TICK_PX, tickSpace } from "./lines";
import "./charts.css";
import { FONT, paint, paintLit, roomFor } from "./paint";
import { paintRules, type Rule } from "./rules";
import { css, onTheme } from "./theme";
import { scaleTo } from "./trace";

export interface Mark {
  trial: number;
  x: number;
  y: number;
  label: string;
  open: () => void;
}
export interface Ticks {
  x: [number, string][];
  y: [number, string][];
}
export interface PlotProps {
  lines: Line[];
  extent: Extent;
  axis: string;
  log: boolean;
  band: boolean;
  marks: Mark[];
  rules?: Rule[];
  height: number;
  name: string;
  /** x under the cross hair of any chart on the page; null if there is none. */
  onCursor: (x: number | null) => void;
  /** Position of the pointer in this chart, in pixels; null if it is elsewhere. */
  onPointer?: (at: { left: number; top: number; x: number; width: number } | null) => void;
  /** It shows a part of its range, and a double click returns to the whole. */
  isZoomed: boolean;
  onZoom: (range: [number, number] | null) => void;
  onOpen?: (trial: number) => void;
  /** A click on a point that opens nothing else. */
  onPick?: (spot: { line: Line; at: number }) => void;
  /** Returns the ticks of the axes, for exports. */
  ticks: { current: () => Ticks };
}

/** Distances of ticks: batches are counted in whole ones, and time in what clocks show. */
const WHOLE = [1, 2, 5].flatMap((step) => Array.from({ length: 15 }, (_, power) => step * 10 ** power)).sort((a, b) => a - b);
const CLOCK = [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800]
  .concat([1, 2, 3, 6, 12].map((hours) => hours * 3600))
  .concat(WHOLE.map((days) => days * 86400));
const STEPS: Record<string, number[]> = { batches: WHOLE, since: CLOCK };

const REACH_PX = 24;
/** How long a click waits for a second one, where two of them return to the whole range. */
const DOUBLE_MS = 300;
const CLICK_PX = 4;

export function Plot(props: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useRef(props);
  const waits = useRef(false);
  now.current = props;
  const { axis, log, height } = props;

  // biome-ignore lint/correctness/useExhaustiveDependencies: uPlot is created once and reads the props from `now`
  useEffect(() => {
    const made = new uPlot(
      options(now, box.current!.clientWidth),
      [
        [0, 1],
        [null, null],
      ],
      box.current!,
    );
    const stop = listen(made, now);
    plot.current = made;
    show(made, now.current);
    const watch = new ResizeObserver(() => box.current && made.setSize({ width: box.current.clientWidth, height }));
    watch.observe(box.current!);
    return () => {
      stop();
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [axis, log, height]);

  // A background tab receives data, and draws only when it is looked at.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the other props do not affect the drawing
  useEffect(() => {
    if (document.hidden) waits.current = true;
    else if (plot.current) show(plot.current, props);
  }, [props.lines, props.extent, props.band, props.marks, props.rules]);
  useEffect(() => {
    const back = () => {
      if (document.hidden || !waits.current || !plot.current) return;
      waits.current = false;
      show(plot.current, now.current);
    };
    const stop = onTheme(() => plot.current?.redraw(false, true));
    document.addEventListener("visibilitychange", back);
    return () => {
      stop();
      document.removeEventListener("visibilitychange", back);
    };
  }, []);
  // The lines are drawn once; the highlighted one is drawn on a canvas above them.
  useEffect(() => onLit((lit) => plot.current && paintLit(plot.current, now.current, lit)), []);

  return <div ref={box} className="plot" role="img" aria-label={props.name} style={{ height }} />;
}

/** uPlot recomputes its ranges when it gets data; it does not know the lines themselves. */
const show = (plot: uPlot, { extent }: PlotProps) => plot.setData([extent.x, [null, null]]);

function options(now: { current: PlotProps }, width: number): uPlot.Options {
  const { axis, log, height } = now.current;
  const soft = () => css("--ink-3");
  const grid = { stroke: () => css("--grid"), width: 1 };
  const quiet = { font: `11px ${FONT}`, ticks: { show: false }, stroke: soft };
  const ticked: Ticks = { x: [], y: [] };
  const noted = (side: "x" | "y", splits: number[], texts: (string | number | null)[]) => {
    ticked[side] = splits.map((at, place): [number, string] => [at, String(texts[place] ?? "").split("\n")[0]!]).filter(([, text]) => text);
    return texts;
  };
  now.current.ticks.current = () => ticked;
  return {
    width,
    height,
    padding: [10, null, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: "page", scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      drag: { x: true, y: false, setScale: false },
      points: { show: false },
      y: false,
    },
    scales: {
      x: { time: axis === "time", range: () => now.current.extent.x },
      y: { distr: log ? 3 : 1, range: () => now.current.extent.y },
    },
    axes: [
      {
        ...quiet,
        grid: { show: false },
        border: { show: true, stroke: () => css("--line-2"), width: 1 },
        size: 26,
        gap: 6,
        space: axis === "time" || axis === "since" ? TICK_PX : (_, _axis, _least, most, wide) => tickSpace(tickText(most), wide),
        ...(STEPS[axis] ? { incrs: STEPS[axis] } : {}),
        ...(axis === "time"
          ? {}
          : { values: (_: uPlot, splits: number[]) => noted("x", splits, splits.map(axis === "since" ? elapsed(splits) : tickText)) }),
      },
      {
        ...quiet,
        grid,
        size: (_, texts) => 16 + 6.4 * Math.max(2, ...(texts ?? []).map((text) => String(text).length)),
        gap: 7,
        space: 34,
        values: (u, splits) => noted("y", splits, log ? logTexts(splits, u.height) : splits.map(tickText)),
      },
      // Room for the labels at the ends of the lines.
      {
        side: 1,
        scale: "y",
        size: () => roomFor(now.current.lines),
        grid: { show: false },
        ticks: { show: false },
        values: () => [],
      },
    ],
    series: [{}, { points: { show: false } }],
    hooks: {
      draw: [
        (u) => {
          if (axis === "time") ticked.x = timeTicks(u);
          paintRules(u, now.current.rules ?? [], axis, now.current.extent.x);
          paint(u, now.current);
          paintLit(u, now.current, lighted());
        },
      ],
      setCursor: [(u) => now.current.onCursor(u.cursor.left! >= 0 ? u.posToVal(u.cursor.left!, "x") : null)],
      setSelect: [
        (u) => {
          const { left, width } = u.select;
          if (width <= CLICK_PX) return;
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          now.current.onZoom([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
        },
      ],
    },
  };
}

/** Fractional seconds if the ticks are less than a second apart, otherwise durations such as `2h 5m`. */
const elapsed = (splits: number[]) => ((splits[1] ?? 0) - (splits[0] ?? 0) < 1 ? (value: number) => `${tickText(value)} s` : duration);

const timeTicks = (u: uPlot): [number, string][] =>
  ((u.axes[0] as unknown as { _splits?: number[] })._splits ?? []).map((at) => [at, new Date(at * 1000).toLocaleTimeString("en-GB")]);

/** On a logarithmic axis only powers of ten are labelled, unless the axis covers too few of them. */
function logTexts(splits: number[], height: number): string[] {
  const powers = splits.filter((value) => Number.isInteger(Math.log10(value))).length;
  const every = Math.max(1, Math.ceil((powers * 18) / height));
  return splits.map((value) => {
    const power = Math.log10(value);
    return powers < 2 || (Number.isInteger(power) && Math.round(power) % every === 0) ? tickText(value) : "";
  });
}

/** What is under the pointer, in the chart's pixels: a mark, or the nearest line. */
function under(u: uPlot, { lines, extent, log, marks }: PlotProps, left: number, top: number) {
  const { width, height } = u.bbox;
  const ratio = devicePixelRatio;
  const [toX, toY] = [scaleTo(extent.x, 0, width / ratio), scaleTo(extent.y, height / ratio, 0, log)];
  const mark = marks.find((mark) => Math.hypot(toX(mark.x) - left, toY(mark.y) - top) < 12);
  const x = u.posToVal(left, "x");
  let [best, place, reach]: [Line | null, number, number] = [null, -1, REACH_PX];
  for (const line of lines) {
    const at = nearestOf(line, x);
    const y = line.ys[at];
    if (y === null || y === undefined) continue;
    const away = Math.hypot(toY(y) - top, Math.max(0, Math.abs(toX(line.xs[at]!) - left) - 30));
    if (away < reach) [best, place, reach] = [line, at, away];
  }
  return { mark, line: best, at: place };
}

/** Dragging with Shift pans the visible range. */
function pan(plot: uPlot, now: { current: PlotProps }, event: MouseEvent) {
  event.stopImmediatePropagation();
  const [from, to] = now.current.extent.x;
  const wide = plot.over.getBoundingClientRect().width;
  const end = (last: MouseEvent) => {
    const by = ((event.clientX - last.clientX) / wide) * (to - from);
    if (Math.abs(event.clientX - last.clientX) > CLICK_PX) now.current.onZoom([from + by, to + by]);
  };
  document.addEventListener("mouseup", end, { once: true });
}

function listen(plot: uPlot, now: { current: PlotProps }): () => void {
  let pressed = 0;
  let opens = 0;
  const where = (event: MouseEvent) => under(plot, now.current, event.offsetX, event.offsetY);
  const move = (event: MouseEvent) => {
    const { mark, line } = where(event);
    light(line?.trial ?? null);
    const x = plot.posToVal(event.offsetX, "x");
    // Use uPlot's own geometry: asking the DOM would force a layout at every move.
    const [left, width] = [plot.bbox.left / devicePixelRatio, plot.bbox.width / devicePixelRatio];
    now.current.onPointer?.({ left: event.offsetX + left, top: event.offsetY, x, width: width + left });
    const shape = mark || (line && (now.current.onOpen ?? now.current.onPick)) ? "pointer" : "crosshair";
    if (plot.over.style.cursor !== shape) plot.over.style.cursor = shape;
    if (plot.over.title !== (mark?.label ?? "")) plot.over.title = mark?.label ?? "";
  };
  const begin = (event: MouseEvent) => {
    pressed = event.clientX;
    if (event.shiftKey) pan(plot, now, event);
  };
  const click = (event: MouseEvent) => {
    if (Math.abs(event.clientX - pressed) > CLICK_PX) return;
    const { mark, line, at } = where(event);
    const { onOpen, onPick, isZoomed } = now.current;
    const open = () => {
      if (mark) mark.open();
      else if (line && onOpen) onOpen(line.trial);
      else if (line) onPick?.({ line, at });
    };
    clearTimeout(opens);
    if (!isZoomed) open();
    else if (event.detail === 1) opens = window.setTimeout(open, DOUBLE_MS);
  };
  const events: [string, (event: any) => void][] = [
    ["mousemove", move],
    [
      "mouseleave",
      () => {
        light(null);
        now.current.onPointer?.(null);
      },
    ],
    ["mousedown", begin],
    ["click", click],
    ["dblclick", () => now.current.onZoom(null)],
  ];
  for (const [name, act] of events) plot.over.addEventListener(name, act, { capture: true });
  return () => events.forEach(([name, act]) => plot.over.removeEventListener(name, act, { capture: true }));
}
