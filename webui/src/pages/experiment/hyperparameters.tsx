import { useMemo, useState } from "react";
import { useNavigate } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { Card, Empty } from "../../parts/basics";
import { colour, flat, number } from "../../parts/format";
import { MetricChart, ViewControls } from "../../parts/metrics";
import { metricOf } from "./trials";

const TOP = [10, 20, 50, 100];

export function Hyperparameters({ one, trials, topics }: { one: Experiment; trials: Trial[]; topics: string[] }) {
  const [top, setTop] = useState(20);
  const [lit, setLit] = useState<number | null>(null);
  const judged = trials.filter((trial) => metricOf(trial, "bestValidation", one.searcherMetric) !== null);
  if (!judged.length) return <Empty>No trial has reported {one.searcherMetric} yet.</Empty>;
  const shown = judged.slice(0, top);
  return (
    <>
      <div className="controls">
        <label>
          best
          <select value={top} onChange={(event) => setTop(Number(event.target.value))}>
            {TOP.map((count) => (
              <option key={count}>{count}</option>
            ))}
          </select>
          of {judged.length} trials
        </label>
      </div>
      <Card title="Learning curves">
        <ViewControls epochs={false} />
        <MetricChart trials={shown.map((trial) => trial.id)} metric={one.searcherMetric} topics={topics} />
      </Card>
      <Card title="Parallel coordinates">
        <Parallel one={one} trials={shown} lit={lit} onLight={setLit} />
      </Card>
    </>
  );
}

interface Scale {
  name: string;
  place: (trial: Trial) => number | null;
  ticks: [number, string][];
}

function scaleOf(name: string, values: unknown[], read: (trial: Trial) => unknown): Scale {
  const numbers = values.filter((value): value is number => typeof value === "number");
  if (numbers.length === values.length) {
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const wide = low > 0 && high / low > 50;
    const map = (value: number) => (wide ? Math.log(value) : value);
    const span = map(high) - map(low) || 1;
    const place = (trial: Trial) => {
      const value = read(trial);
      return typeof value === "number" ? (map(value) - map(low)) / span : null;
    };
    return { name, place, ticks: [[0, number(low, 3)], [1, number(high, 3)]] };
  }
  const kinds = [...new Set(values.map((value) => JSON.stringify(value)))].sort();
  const at = (value: unknown) => (kinds.length > 1 ? kinds.indexOf(JSON.stringify(value)) / (kinds.length - 1) : 0.5);
  return { name, place: (trial) => at(read(trial)), ticks: kinds.slice(0, 12).map((kind) => [at(JSON.parse(kind)), kind]) };
}

const WIDTH = 1000;
const HEIGHT = 320;
const TOP_PX = 40;

/** Each trial is a line over its hyperparameters and the metric. */
function Parallel({ one, trials, lit, onLight }: { one: Experiment; trials: Trial[]; lit: number | null; onLight: (id: number | null) => void }) {
  const navigate = useNavigate();
  const scales = useMemo(() => {
    const names = [...new Set(trials.flatMap((trial) => Object.keys(flat(trial.hparams))))];
    const found = names.map((name) => scaleOf(name, trials.map((trial) => flat(trial.hparams)[name]), (trial) => flat(trial.hparams)[name]));
    const metric = (trial: Trial) => metricOf(trial, "bestValidation", one.searcherMetric);
    return [...found, scaleOf(one.searcherMetric, trials.map(metric), metric)];
  }, [trials, one.searcherMetric]);
  const x = (at: number) => 60 + (at * (WIDTH - 120)) / Math.max(1, scales.length - 1);
  const y = (share: number) => TOP_PX + (1 - share) * (HEIGHT - TOP_PX - 30);
  const pathOf = (trial: Trial) =>
    scales
      .map((scale, at) => [x(at), scale.place(trial)] as const)
      .filter((point): point is readonly [number, number] => point[1] !== null)
      .map(([left, share], at) => `${at ? "L" : "M"}${left},${y(share)}`)
      .join("");
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} className="parallel" role="img" aria-label="Hyperparameters of the trials and their metric">
      {trials.map((trial) => (
        <path
          key={trial.id}
          d={pathOf(trial)}
          fill="none"
          stroke={colour(trial.id)}
          strokeWidth={lit === trial.id ? 4 : 1.6}
          opacity={lit === null || lit === trial.id ? 0.85 : 0.15}
          onMouseEnter={() => onLight(trial.id)}
          onMouseLeave={() => onLight(null)}
          onClick={() => navigate(`/experiments/${one.id}/trials/${trial.id}/overview`)}
        >
          <title>{`trial ${trial.id}: ${JSON.stringify(trial.hparams)}`}</title>
        </path>
      ))}
      {scales.map((scale, at) => (
        <g key={scale.name}>
          <line x1={x(at)} x2={x(at)} y1={y(0)} y2={y(1)} className="axis" />
          <text x={x(at)} y={18} textAnchor="middle">
            {scale.name}
          </text>
          {scale.ticks.map(([share, text]) => (
            <text key={text} x={x(at) + 6} y={y(share) + (share ? -4 : 14)} className="tick">
              {text}
            </text>
          ))}
        </g>
      ))}
    </svg>
  );
}
