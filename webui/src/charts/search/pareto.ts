/** The Pareto front: the points that no other point beats in both values. */

/**
 * Indices of these points, ordered by their first value from good to poor; `smaller` says for each value whether less
 * is better.
 */
export function paretoFront(points: [number, number][], smaller: [boolean, boolean]): number[] {
  const sign = smaller.map((less) => (less ? 1 : -1)) as [number, number];
  const order = points.map((_, at) => at);
  order.sort((a, b) => sign[0] * (points[a]![0] - points[b]![0]) || sign[1] * (points[a]![1] - points[b]![1]));
  let best = Number.POSITIVE_INFINITY;
  return order.filter((at) => {
    const value = sign[1] * points[at]![1];
    const leads = value < best;
    if (leads) best = value;
    return leads;
  });
}
