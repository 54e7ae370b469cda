/** A curve as small as a word. */
export function Spark({ values, title }: { values: number[]; title: string }) {
  if (values.length < 2) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const place = (value: number, at: number): [number, number] => [
    2 + (at / (values.length - 1)) * 92,
    20 - ((value - low) / (high - low || 1)) * 16,
  ];
  const points = values.map(place);
  const [x, y] = points.at(-1)!;
  return (
    <svg className="spark" viewBox="0 0 96 24" preserveAspectRatio="none" role="img" aria-label={title}>
      <title>{title}</title>
      <path d={`M${points.map((point) => point.map((one) => one.toFixed(1)).join(",")).join("L")}`} vectorEffect="non-scaling-stroke" />
      <circle cx={x} cy={y} r={2} />
    </svg>
  );
}
