/**
 * Smoothing of series whose points are not evenly spaced.
 *
 * An exponential moving average of an irregular series: a point at distance d counts `weight ** (d / unit)`, where the
 * unit is the mean distance between neighbours (A. Eckner, "Algorithms for Unevenly Spaced Time Series: Moving Averages
 * and Other Rolling Operators"). It is divided by the sum of all weights, so that the start is not pulled towards zero
 * (the bias correction of D. Kingma and J. Ba, "Adam", 2015). With equal distances it is the usual average per point.
 */
export function smooth(xs: ArrayLike<number>, ys: ArrayLike<number | null>, weight: number): (number | null)[] {
  const unit = spacing(xs);
  let [sum, total, before] = [0, 0, NaN];
  return Array.from(ys, (y, at) => {
    if (y === null) return null;
    const x = xs[at]!;
    // If x decreases, or several values share one x, the points count as neighbours.
    const left = Number.isNaN(before) ? 0 : weight ** (unit > 0 && x > before ? (x - before) / unit : 1);
    sum = sum * left + (1 - weight) * y;
    total = total * left + (1 - weight);
    before = x;
    return total > 0 ? sum / total : y;
  });
}

function spacing(xs: ArrayLike<number>): number {
  if (xs.length < 2) return 0;
  return Math.abs(xs[xs.length - 1]! - xs[0]!) / (xs.length - 1);
}
