/** A chart with what belongs to it: legend, table, files. */

import { useCallback, useMemo, useRef, useState } from "react";

import { number } from "../parts/format";
import { save, toCsv, toPng, toSvg } from "./export";
import { useLit } from "./light";
import { axisName, extent, type Line, nearestOf, xText } from "./lines";
import { type Mark, Plot, type Ticks } from "./plot";
import { Picked, type Spot, ToLog } from "./point";
import { css } from "./theme";

export interface ChartProps {
  title: string;
  lines: Line[];
  axis: string;
  log?: boolean;
  band?: boolean;
  marks?: Mark[];
  height?: number;
  /** What is drawn is not yet what was asked for. */
  busy?: boolean;
  zoom: [number, number] | null;
  onZoom: (range: [number, number] | null) => void;
  onOpen?: (trial: number) => void;
  /** Path of a trial's page; a click on a point leads to its log where that is given. */
  place?: (trial: number) => string;
}

const LEGEND = 8;
export function Chart({
  title,
  lines,
  axis,
  log = false,
  band = true,
  marks = [],
  height = 240,
  busy = false,
  zoom,
  onZoom,
  onOpen,
  place,
}: ChartProps) {
  const [asTable, setAsTable] = useState(false);
  const [cursor, setCursor] = useState<number | null>(null);
  const [picked, setPicked] = useState<Spot | null>(null);
  const ticks = useRef<() => Ticks>(() => ({ x: [], y: [] }));
  const span = useMemo(() => {
    const found = extent(lines, log, band);
    return found && zoom ? { ...found, x: zoom } : found;
  }, [lines, log, band, zoom]);
  const drawing = useCallback(
    () => ({
      title,
      axis: axisName(axis),
      lines,
      extent: span!,
      log,
      band,
      ticks: ticks.current(),
      colours: { ground: css("--card"), ink: css("--ink"), soft: css("--soft"), line: css("--line") },
    }),
    [title, axis, lines, span, log, band],
  );
  return (
    <figure className="chart" aria-label={title} aria-busy={busy}>
      <figcaption>
        <span>{title}</span>
        <span className="tools">
          {zoom && (
            <button type="button" onClick={() => onZoom(null)}>
              Whole range
            </button>
          )}
          <button type="button" onClick={() => setAsTable(!asTable)}>
            {asTable ? "Show as chart" : "Show as table"}
          </button>
          <details className="menu">
            <summary>Export</summary>
            <span>
              <button
                type="button"
                disabled={!span}
                onClick={() => save(`${title}.csv`, new Blob([toCsv(lines, axisName(axis))], { type: "text/csv" }))}
              >
                CSV
              </button>
              <button
                type="button"
                disabled={!span || asTable}
                onClick={() => save(`${title}.svg`, new Blob([toSvg(drawing())], { type: "image/svg+xml" }))}
              >
                SVG
              </button>
              <button type="button" disabled={!span || asTable} onClick={async () => save(`${title}.png`, await toPng(toSvg(drawing())))}>
                PNG
              </button>
            </span>
          </details>
        </span>
      </figcaption>
      {asTable ? (
        <PointTable axis={axis} lines={lines} place={place} />
      ) : span ? (
        <Plot
          lines={lines}
          extent={span}
          axis={axis}
          log={log}
          band={band}
          marks={marks}
          height={height}
          ticks={ticks}
          name={`${title} over ${axisName(axis)}; the same as text: Show as table`}
          onCursor={setCursor}
          onZoom={onZoom}
          onOpen={onOpen}
          onPick={place && setPicked}
        />
      ) : (
        <p className="empty" style={{ minHeight: height }}>
          {zoom ? "Nothing was reported in this range." : `No point has ${axisName(axis)} yet.`}
        </p>
      )}
      {picked && place && !asTable && <Picked spot={picked} axis={axis} place={place} onClose={() => setPicked(null)} />}
      {!asTable && <Legend lines={lines} axis={axis} cursor={cursor} />}
    </figure>
  );
}

/** Values under the cross hair, otherwise the latest; of many lines only the one that is lit. */
function Legend({ lines, axis, cursor }: { lines: Line[]; axis: string; cursor: number | null }) {
  const lit = useLit();
  const lying = lines.filter((line) => line.trial === lit);
  const shown = lines.length <= LEGEND ? lines : lying;
  const broken = lines.reduce((sum, line) => sum + line.nonFinite, 0);
  return (
    <ul className="legend">
      <li className="soft">{cursor === null ? axisName(axis) : xText(axis, cursor)}</li>
      {shown.map((line) => (
        <Entry key={line.key} line={line} cursor={cursor} />
      ))}
      {shown.length < lines.length && <li className="soft">{lines.length.toLocaleString("en")} lines</li>}
      {broken > 0 && <li className="bad">{broken.toLocaleString("en")} not finite (crosses)</li>}
    </ul>
  );
}

function Entry({ line, cursor }: { line: Line; cursor: number | null }) {
  const at = cursor === null ? line.from.last.findLastIndex((y) => y !== null) : nearestOf(line, cursor);
  const value = line.ys[at];
  const [low, high] = [line.low?.[at], line.high?.[at]];
  const many = low !== undefined && low !== null && low !== high;
  return (
    <li>
      <svg width="22" height="8" aria-hidden>
        <line x1="0" x2="22" y1="4" y2="4" stroke={line.colour} strokeWidth="2.5" strokeDasharray={line.dash.join(" ")} />
      </svg>{" "}
      {line.label} <output>{value === null || value === undefined ? "" : number(value, 6)}</output>
      {line.pale && typeof line.pale[at] === "number" && <span className="soft"> raw {number(line.pale[at], 6)}</span>}
      {many && (
        <span className="soft">
          {" "}
          {number(low, 5)} to {number(high, 5)}
        </span>
      )}
    </li>
  );
}

const ROWS = 500;

function PointTable({ axis, lines, place }: { axis: string; lines: Line[]; place?: (trial: number) => string }) {
  const rows = lines.flatMap((line) => line.xs.map((_, at) => ({ line, at })));
  return (
    <div className="scroll" tabIndex={0}>
      {rows.length > ROWS && (
        <p className="soft">
          The last {ROWS} of {rows.length.toLocaleString("en")} rows; Export CSV has all.
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th>series</th>
            <th className="num">{axisName(axis)}</th>
            <th className="num">value</th>
            <th className="num">minimum</th>
            <th className="num">maximum</th>
            <th className="num">not finite</th>
            {place && (
              <th>
                <span className="hidden">Log</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.slice(-ROWS).map(({ line, at }) => (
            <tr key={`${line.key} ${at}`}>
              <td>{line.label}</td>
              <td className="num">{xText(axis, line.xs[at]!)}</td>
              <td className="num" title={String(line.from.last[at] ?? "")}>
                {number(line.from.last[at], 8)}
              </td>
              <td className="num">{number(line.low?.[at], 8)}</td>
              <td className="num">{number(line.high?.[at], 8)}</td>
              <td className="num">{line.gaps[at] || ""}</td>
              {place && (
                <td className="num">
                  <ToLog spot={{ line, at }} place={place} text="log" />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
