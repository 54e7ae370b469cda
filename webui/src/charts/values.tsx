/** The points of a chart as a table. */

import { number } from "../parts/format";
import { axisName, type Line, xText } from "./lines";
import { ToLog } from "./point";

const ROWS = 500;

export function PointTable({ axis, lines, place }: { axis: string; lines: Line[]; place?: (trial: number) => string }) {
  const rows = lines.flatMap((line) => line.xs.map((_, at) => ({ line, at })));
  return (
    <div className="points" tabIndex={0}>
      {rows.length > ROWS && (
        <p className="ink3 sm">
          The last {ROWS} of {rows.length.toLocaleString("en")} rows; Export as CSV has all.
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
                <span className="vh">Log</span>
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
