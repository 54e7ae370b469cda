/** The result of a search: the best value so far, the distribution of the metric, and which hyperparameters matter. */

import { useCallback, useEffect, useMemo, useState } from "react";

import { many, number } from "../../parts/format";
import { FONT } from "../paint";
import { css } from "../theme";
import { Loading } from "../../ui/status";
import { type Axis, axisOf, placeOf } from "./axes";
import { Canvas, type Frame } from "./canvas";
import { Dots } from "./dots";
import { importance } from "./importance";
import { bestSoFar, histogram, type Row } from "./rows";

export function History({
  rows,
  metric,
  smaller,
  start,
  tint,
  onOpen,
  height,
}: {
  rows: Row[];
  metric: Axis;
  height?: number;
  smaller: boolean;
  /** Start of the experiment, in seconds since 1970. */
  start: number;
  tint: (row: Row) => string;
  onOpen: (row: Row) => void;
}) {
  const timed = useMemo(() => rows.filter((row) => Number.isFinite(row.at)), [rows]);
  const unit = useMemo(
    () => (Math.max(...timed.map((row) => row.at - start), 0) > 7200 ? { name: "hours", size: 3600 } : { name: "minutes", size: 60 }),
    [timed, start],
  );
  const x = useMemo(
    () => axisOf(`${unit.name} since the start`, timed, (row) => (row.at - start) / unit.size, "linear"),
    [timed, start, unit],
  );
  const best = useMemo(() => bestSoFar(timed, smaller), [timed, smaller]);
  const steps = useCallback(
    ({ ctx }: Frame, at: (x: number, y: number) => [number, number]) => {
      ctx.beginPath();
      best.forEach((row, place) => {
        const [left, up] = [placeOf(x, row)!, placeOf(metric, row)!];
        if (place) ctx.lineTo(at(left, 0)[0], at(0, placeOf(metric, best[place - 1]!)!)[1]);
        ctx[place ? "lineTo" : "moveTo"](...at(left, up));
      });
      if (best.length) ctx.lineTo(...at(1, placeOf(metric, best.at(-1)!)!));
      ctx.strokeStyle = css("--accent");
      ctx.lineWidth = 2;
      ctx.stroke();
    },
    [best, x, metric],
  );
  return (
    <Dots
      name={`Best ${metric.name} so far, and all trials, over time`}
      rows={timed}
      x={x}
      y={metric}
      tint={tint}
      onOpen={onOpen}
      height={height}
      ground={steps}
    />
  );
}

export function Distribution({ rows, name, height = 200 }: { rows: Row[]; name: string; height?: number }) {
  const bins = useMemo(() => histogram(rows.map((row) => row.value)), [rows]);
  const draw = useCallback(
    ({ ctx, width, height }: Frame) => {
      const most = Math.max(...bins.map((bin) => bin.count), 1);
      const [left, bottom] = [34, height - 24];
      const wide = (width - left - 10) / Math.max(1, bins.length);
      ctx.font = `11px ${FONT}`;
      bins.forEach((bin, at) => {
        const high = (bin.count / most) * (bottom - 12);
        ctx.fillStyle = css("--accent");
        ctx.fillRect(left + at * wide + 1, bottom - high, Math.max(1, wide - 2), high);
      });
      ctx.fillStyle = css("--ink-3");
      ctx.fillText(String(most), 4, 16);
      ctx.fillText("0", 4, bottom);
      if (!bins.length) return;
      ctx.fillText(number(bins[0]!.from, 4), left, height - 6);
      ctx.textAlign = "right";
      ctx.fillText(number(bins.at(-1)!.to, 4), width - 10, height - 6);
    },
    [bins],
  );
  return (
    <Canvas
      name={`How many trials reached which ${name}: ${bins.map((bin) => `${number(bin.from, 3)} to ${number(bin.to, 3)}: ${bin.count}`).join("; ")}`}
      height={height}
      draw={draw}
    />
  );
}

const FEW = 20;
/** Below this many trials per hyperparameter, a forest mostly fits noise. */
const EACH = 5;
/** A share that is shown as 0.0 %. */
const LEAST = 0.0005;

export function Importances({
  rows,
  axes,
  shareOf,
  onRanked,
}: {
  rows: Row[];
  axes: Axis[];
  shareOf: (row: Row) => number;
  /** Receives the hyperparameters, the most important first. */
  onRanked: (names: string[]) => void;
}) {
  const [shown, setFound] = useState<Found | null>(null);
  // Compute after the page is drawn, since growing a forest takes a moment.
  useEffect(() => {
    const timer = setTimeout(() => {
      const explained = explain(rows, axes, shareOf);
      setFound(explained);
      onRanked(explained.shares.map((parameter) => parameter.name));
    });
    return () => clearTimeout(timer);
  }, [rows, axes, shareOf, onRanked]);
  if (!shown) return <Loading />;
  const enough = Math.max(FEW, EACH * shown.shares.length);
  if (!shown.shares.length) return <p className="ink2 sm inset">No hyperparameter differs between these trials.</p>;
  if (shown.shares.every(({ share }) => share < LEAST))
    return <p className="ink2 sm inset">{many(shown.trials, "trial")}: too few to tell which hyperparameter matters.</p>;
  return (
    <div className="importances">
      <ul aria-label="Importance of hyperparameters">
        {shown.shares.map(({ name, share }) => (
          <li key={name}>
            <span className="mono cut" title={name}>
              {name}
            </span>
            <b>{(100 * share).toFixed(1)} %</b>
            <span className="share">
              <i style={{ width: `${Math.max(0.5, 100 * share)}%` }} />
            </span>
          </li>
        ))}
      </ul>
      <p className="ink3 xs" role="note">
        {shown.trials < enough
          ? `From ${many(shown.trials, "trial")}. With fewer than ${enough}, trust the order, not the numbers.`
          : `How much of the variation each one explains alone, across ${many(shown.trials, "trial")}, estimated with a random forest (fANOVA; Hutter et al., 2014). The rest, up to 100 %, is interaction or noise.`}
      </p>
    </div>
  );
}

interface Found {
  trials: number;
  shares: { name: string; share: number }[];
}

function explain(rows: Row[], axes: Axis[], shareOf: (row: Row) => number): Found {
  const varied = axes.filter((axis) => axis.high > axis.low);
  const whole = rows.filter((row) => varied.every((axis) => placeOf(axis, row) !== null));
  const encoded = whole.map((row) => varied.map((axis) => encode(axis, placeOf(axis, row)!)));
  const shares = importance(encoded, whole.map(shareOf));
  const named = varied.map((axis, at) => ({ name: axis.name, share: shares[at]! }));
  return { trials: whole.length, shares: named.sort((a, b) => b.share - a.share) };
}

/** Kinds divide the axis into equal parts. */
const encode = (axis: Axis, place: number) => (axis.kinds ? (place * (axis.kinds.length - 1) + 0.5) / axis.kinds.length : place);
