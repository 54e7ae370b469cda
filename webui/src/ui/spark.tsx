import { stateColour } from "./state";

/** A curve as small as a word, in the colour of the state, with a dot at its end. */
export function Spark({
  values,
  title,
  state = "COMPLETED",
  colour,
  width = 62,
  height = 20,
}: {
  values: number[];
  title: string;
  state?: string;
  colour?: string;
  width?: number;
  height?: number;
}) {
  const finite = values.filter(Number.isFinite);
  if (finite.length < 2) return null;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const place = (value: number, at: number) =>
    `${(2 + (at / (finite.length - 1)) * (width - 6)).toFixed(1)},${(height - 3 - ((value - low) / (high - low || 1)) * (height - 6)).toFixed(1)}`;
  const points = finite.map(place);
  const [x, y] = points.at(-1)!.split(",");
  const over = !/RUNNING|PAUSED|ERROR|ACTIVE/.test(state);
  return (
    <svg
      className="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={title}
      style={{ color: colour ?? (over ? "var(--ink-3)" : stateColour(state)) }}
    >
      <title>{title}</title>
      <polyline points={points.join(" ")} />
      <circle cx={x} cy={y} r={2.2} />
    </svg>
  );
}
