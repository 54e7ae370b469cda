/**
 * How much of a metric's variance each hyperparameter explains by itself: functional analysis of variance over a random
 * forest (F. Hutter, H. Hoos, K. Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter Importance", ICML
 * 2014).
 *
 * A tree is constant on boxes, so the mean over all other hyperparameters can be computed exactly. Its variance divided
 * by the tree's total variance is the hyperparameter's share; the result is the mean over all trees.
 */

interface Box {
  low: number[];
  high: number[];
  value: number;
}

const TREES = 32;
const LEAF = 3;
const DEPTH = 40;
/** Points per tree: more points make it slower, not more accurate. */
const POINTS = 400;

/**
 * `points`: one row per trial, every entry in [0, 1]; `values`: the trials' metric. Returns a share from 0 to 1 for
 * each column.
 */
export function importance(points: number[][], values: number[], seed = 1): number[] {
  const columns = points[0]?.length ?? 0;
  const draw = generator(seed);
  const sums = new Array<number>(columns).fill(0);
  let counted = 0;
  for (let tree = 0; tree < TREES && columns; tree++) {
    const sample = Array.from({ length: Math.min(points.length, POINTS) }, () => Math.floor(draw() * points.length));
    const shares = explained(grow(points, values, sample, draw), columns);
    if (!shares) continue;
    counted++;
    shares.forEach((share, at) => (sums[at]! += share));
  }
  return sums.map((sum) => (counted ? sum / counted : 0));
}

/** Mulberry32 (T. Ettinger): a seeded generator, so that the same trials give the same forest. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The boxes of a regression tree over [0, 1] in every column. */
function grow(points: number[][], values: number[], sample: number[], draw: () => number): Box[] {
  const columns = points[0]!.length;
  const open = [{ sample, low: new Array<number>(columns).fill(0), high: new Array<number>(columns).fill(1), depth: 0 }];
  const boxes: Box[] = [];
  for (let node = open.pop(); node; node = open.pop()) {
    const { low, high, depth } = node;
    const split = depth < DEPTH ? bestSplit(points, values, node.sample, draw) : null;
    if (!split) {
      boxes.push({ low, high, value: mean(values, node.sample) });
      continue;
    }
    const { column, at } = split;
    const part = (left: boolean) => node!.sample.filter((point) => points[point]![column]! <= at === left);
    open.push({ sample: part(true), low, high: high.with(column, at), depth: depth + 1 });
    open.push({ sample: part(false), low: low.with(column, at), high, depth: depth + 1 });
  }
  return boxes;
}

const mean = (values: number[], sample: number[]) => sample.reduce((sum, point) => sum + values[point]!, 0) / sample.length;

/** The split that leaves the least variance, among some randomly chosen columns; null if no split reduces it. */
function bestSplit(points: number[][], values: number[], sample: number[], draw: () => number) {
  const total = sample.reduce((sum, point) => sum + values[point]!, 0);
  let best: { column: number; at: number } | null = null;
  let gain = (total * total) / sample.length + 1e-12 * Math.abs(total);
  for (const column of some(points[0]!.length, draw)) {
    const sorted = [...sample].sort((a, b) => points[a]![column]! - points[b]![column]!);
    let left = 0;
    for (let count = 1; count < sorted.length; count++) {
      left += values[sorted[count - 1]!]!;
      const [before, after] = [points[sorted[count - 1]!]![column]!, points[sorted[count]!]![column]!];
      if (before === after || count < LEAF || sorted.length - count < LEAF) continue;
      const right = total - left;
      const score = (left * left) / count + (right * right) / (sorted.length - count);
      if (score > gain) [best, gain] = [{ column, at: (before + after) / 2 }, score];
    }
  }
  return best;
}

/** A random five sixths of the columns, at least one. */
function some(columns: number, draw: () => number): number[] {
  const all = Array.from({ length: columns }, (_, at) => at);
  const out = Math.floor(columns / 6) || (columns > 2 ? 1 : 0);
  for (let count = 0; count < out; count++) all.splice(Math.floor(draw() * all.length), 1);
  return all;
}

/**
 * For one tree: the variance of each column's marginal mean as a share of the total; null if the tree has no variance.
 */
function explained(boxes: Box[], columns: number): number[] | null {
  const volumes = boxes.map(({ low, high }) => low.reduce((product, end, at) => product * (high[at]! - end), 1));
  const middle = boxes.reduce((sum, box, at) => sum + volumes[at]! * box.value, 0);
  const all = boxes.reduce((sum, box, at) => sum + volumes[at]! * (box.value - middle) ** 2, 0);
  if (!(all > 0)) return null;
  return Array.from({ length: columns }, (_, column) => alone(boxes, volumes, column, middle) / all);
}

function alone(boxes: Box[], volumes: number[], column: number, middle: number): number {
  // A sweep along the column: each box adds to the mean from its lower to its upper bound.
  const steps = boxes.flatMap((box, at) => {
    const width = box.high[column]! - box.low[column]!;
    const part = width > 0 ? (volumes[at]! / width) * (box.value - middle) : 0;
    return [[box.low[column]!, part] as const, [box.high[column]!, -part] as const];
  });
  steps.sort((a, b) => a[0] - b[0]);
  let [before, height, variance] = [0, 0, 0];
  for (const [at, change] of steps) {
    variance += (at - before) * height * height;
    before = at;
    height += change;
  }
  return variance;
}
