/** Learning curves of a search, behind the sign-in form. They show nothing, so they are the same each time. */

const [WIDE, HIGH, STEP] = [1000, 600, 12];
/** Where a curve levels off, how fast it rises, and where its trial was stopped, as shares of the picture. */
const TRIALS = [
  [0.88, 7.5, 1],
  [0.87, 6.4, 1],
  [0.83, 5.2, 1],
  [0.79, 5.8, 1],
  [0.85, 4.4, 0.44],
  [0.7, 5.6, 0.7],
  [0.6, 6.2, 0.44],
  [0.52, 4.8, 0.7],
  [0.44, 5.4, 0.22],
  [0.36, 4.2, 0.22],
  [0.26, 5, 0.22],
] as const;

function path([level, rise, end]: (typeof TRIALS)[number], trial: number): string {
  const steps = Array.from({ length: Math.floor((WIDE * end) / STEP) + 1 }, (_, at) => at * STEP);
  const wobble = (x: number) => 5 * Math.sin(x / 17 + 2 * trial) * Math.sin(x / 41 + trial) * Math.min(1, x / 120);
  return steps.map((x) => `${x},${(HIGH * (1 - level * (1 - Math.exp((-rise * x) / WIDE))) + wobble(x)).toFixed(1)}`).join(" ");
}

export const Curves = () => (
  <svg className="curves" viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" aria-hidden="true">
    {TRIALS.map((curve, trial) => (
      <polyline key={path(curve, trial)} points={path(curve, trial)} opacity={curve[2] < 1 ? 0.45 : 1} />
    ))}
  </svg>
);
