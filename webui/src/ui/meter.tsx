/** Shares and progress as bars, and a row of days. */

import { stateColour } from "./state";

export interface Part {
  /** Of the whole, 0 to 1. */
  share: number;
  colour: string;
  title?: string;
}

export const Meter = ({ label, parts }: { label: string; parts: Part[] }) => (
  <span className="meter" role="img" aria-label={label}>
    {parts
      .filter((part) => part.share > 0)
      .map((part, at) => (
        <i key={at} title={part.title} style={{ width: `${100 * Math.min(1, part.share)}%`, background: part.colour }} />
      ))}
  </span>
);

/** Progress from 0 to 1; draws nothing if unknown. */
export function Progress({ value, state = "RUNNING", width }: { value: number | null | undefined; state?: string; width?: number }) {
  if (value === null || value === undefined) return null;
  const percent = `${Math.round(value * 100)} %`;
  return (
    <span
      className="prog"
      role="progressbar"
      aria-valuenow={Math.round(value * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-label="Progress"
    >
      <span className="track" style={width ? { width } : undefined}>
        <i style={{ width: percent.replace(" ", ""), background: stateColour(state) }} />
      </span>
      <span className="of">{percent}</span>
    </span>
  );
}

/** One bar per day; the last one is today. */
export function Bars({ values, title, labels }: { values: number[]; title: string; labels?: string[] }) {
  const most = Math.max(...values, 1e-9);
  return (
    <div className="days" role="img" aria-label={title}>
      {values.map((value, at) => (
        <i key={at} title={labels?.[at]} style={{ height: `${(100 * value) / most}%` }} />
      ))}
    </div>
  );
}
