import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { number } from "./format";

export type Axis = "batches" | "epoch" | "time";
export interface Line {
  name: string;
  colour: string;
  dash?: boolean;
  xs: number[];
  ys: (number | null)[];
}
export interface ChartProps {
  title: string;
  lines: Line[];
  axis: Axis;
  log?: boolean;
  smooth?: number;
  height?: number;
  onZoom?: (range: [number, number] | null) => void;
}

/** An exponential mean over the points, whose first values count in full. */
function smoothed(ys: (number | null)[], weight: number): (number | null)[] {
  let sum = 0;
  let debias = 0;
  return ys.map((y) => {
    if (y === null) return null;
    sum = sum * weight + (1 - weight) * y;
    debias = debias * weight + (1 - weight);
    return sum / debias;
  });
}

function joined(lines: Line[], smooth: number): { data: uPlot.AlignedData; shown: Line[] } {
  const shown = smooth
    ? lines.flatMap((line) => [
        { ...line, colour: `${line.colour}40`, name: `${line.name} (raw)` },
        { ...line, ys: smoothed(line.ys, smooth) },
      ])
    : lines;
  if (!shown.length) return { data: [[]], shown };
  const tables = shown.map((line) => [line.xs, line.ys] as unknown as uPlot.AlignedData);
  return { data: uPlot.join(tables), shown };
}

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Curves; drag to zoom, double click to return, the cross hair goes through all charts of the page. */
export function Chart({ title, lines, axis, log, smooth = 0, height = 240, onZoom }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [asTable, setAsTable] = useState(false);
  const { data, shown } = useMemo(() => joined(lines, smooth), [lines, smooth]);
  const shape = `${axis}|${log}|${height}|${asTable}|${shown.map((one) => one.name + one.colour).join("|")}`;
  const zoom = useRef(onZoom);
  zoom.current = onZoom;

  useEffect(() => {
    const parent = box.current;
    if (!parent || asTable) return;
    const ink = css("--soft");
    const grid = { stroke: css("--line"), width: 1 };
    const made = new uPlot(
      {
        width: parent.clientWidth,
        height,
        cursor: { sync: { key: "page" }, drag: { x: true, y: false }, points: { size: 6 } },
        legend: { live: true },
        scales: { x: { time: axis === "time" }, y: { distr: log ? 3 : 1 } },
        axes: [
          { stroke: ink, grid, label: axis === "time" ? undefined : axis, labelSize: 18, size: 34 },
          { stroke: ink, grid, size: 62, values: (_, values) => values.map((one) => number(one, 4)) },
        ],
        series: [
          { label: axis, value: axis === "time" ? undefined : (_, value) => number(value) },
          ...shown.map((line) => ({
            label: line.name,
            class: line.name.endsWith("(raw)") ? "raw" : undefined,
            stroke: line.colour,
            width: 1.6,
            dash: line.dash ? [6, 4] : undefined,
            spanGaps: true,
            points: { show: line.xs.length < 60 && !line.name.endsWith("(raw)") },
            value: (_: uPlot, value: number | null) => number(value),
          })),
        ],
        hooks: {
          setSelect: [
            (u) => u.select.width > 0 && zoom.current?.([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]),
          ],
        },
      },
      data,
      parent,
    );
    made.over.addEventListener("dblclick", () => zoom.current?.(null));
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height }));
    watch.observe(parent);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
    // The data goes in below: only another shape makes another plot.
  }, [shape]); // eslint-disable-line react-hooks/exhaustive-deps

  useEffect(() => plot.current?.setData(data), [data]);

  return (
    <figure className="chart" aria-label={title}>
      <figcaption>
        <span>{title}</span>
        <button type="button" onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </button>
      </figcaption>
      {asTable ? <PointTable axis={axis} lines={lines} /> : <div ref={box} style={{ minHeight: height }} />}
    </figure>
  );
}

function PointTable({ axis, lines }: { axis: Axis; lines: Line[] }) {
  const rows = lines.flatMap((line) => line.xs.map((x, at) => [line.name, x, line.ys[at]] as const));
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th>series</th>
            <th className="num">{axis}</th>
            <th className="num">value</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(-500).map(([name, x, y], at) => (
            <tr key={at}>
              <td>{name}</td>
              <td className="num">{axis === "time" ? new Date(x * 1000).toLocaleTimeString() : number(x)}</td>
              <td className="num">{number(y, 8)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
