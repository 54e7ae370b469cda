/** The metric of a model from version to version. */

import { tickText } from "../../charts/export";
import { digits } from "../../parts/format";
import { Card } from "../../ui/card";
import type { Version } from "./facts";

const HEIGHT = 120;
const STEPS = [1, 2, 5, 10];
const LINES = 4;

/** Round values between these two: as many as there can be up to four. */
export function rounded(low: number, high: number): number[] {
  const power = 10 ** Math.floor(Math.log10((high - low) / LINES || Math.abs(low) || 1));
  const counted = STEPS.map((each) => {
    const step = each * power;
    const first = Math.ceil(low / step - 1e-9);
    return { step, first, count: Math.floor(high / step + 1e-9) - first + 1 };
  });
  const { step, first, count } = counted.find((lines) => lines.count <= LINES)!;
  return Array.from({ length: Math.max(0, count) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

export function Course({ versions, metric }: { versions: Version[]; metric: string }) {
  const points = versions.toReversed().flatMap((version) => {
    const value = version.checkpoint.training?.searcherMetric;
    return typeof value === "number" ? [{ version: version.version, production: version.labels?.includes("production"), value }] : [];
  });
  if (points.length < 2) return null;
  const values = points.map((point) => point.value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const room = (most - least) * 0.12 || Math.abs(most) * 0.05 || 1;
  const [low, high] = [least - room, most + room];
  // In percent of the drawing, which is as wide as the page.
  const x = (at: number) => (100 * (at + 0.5)) / points.length;
  const y = (value: number) => 100 * (1 - (value - low) / (high - low));
  const words = points.map(({ version, value }) => `version ${version}: ${digits(value)}`).join(", ");
  return (
    <Card title={`${metric || "Metric"} by version`}>
      <div className="course" role="img" aria-label={words}>
        <div className="area" style={{ height: HEIGHT }}>
          {rounded(low, high).map((value) => (
            <span key={value} className="gridline" style={{ top: `${y(value)}%` }}>
              <i>{tickText(value)}</i>
            </span>
          ))}
          <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
            <polyline points={points.map((point, at) => `${x(at)},${y(point.value)}`).join(" ")} vectorEffect="non-scaling-stroke" />
          </svg>
          {points.map((point, at) => (
            <b key={point.version} style={{ left: `${x(at)}%`, top: `${y(point.value)}%` }} title={`${point.value}`} />
          ))}
        </div>
        <ol>
          {points.map((point) => (
            <li key={point.version}>
              <span className="cut">
                {point.version}
                {point.production && ", production"}
              </span>
              <span className="cut ink">{digits(point.value)}</span>
            </li>
          ))}
        </ol>
      </div>
    </Card>
  );
}
