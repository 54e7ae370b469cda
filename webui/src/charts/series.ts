/** Series of metrics, which the server reduces to about as many buckets as there are pixels. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { get, query } from "../api/client";
import { useAgain } from "../api/data";

/**
 * Columns with one entry per non-empty bucket, ordered by x; `x`, `batches` and `last` are those of the bucket's last
 * point.
 */
export interface Series {
  trialId: number;
  group: string;
  name: string;
  count: number;
  nonFinite: number;
  /** Every bucket holds a single point, so min, max, mean, counts and gaps are omitted. */
  raw: boolean;
  /** False if x is not monotone. */
  monotone?: boolean;
  x: number[];
  batches: number[];
  last: (number | null)[];
  min?: (number | null)[];
  max?: (number | null)[];
  mean?: (number | null)[];
  counts?: number[];
  gaps?: number[];
}

export interface Part {
  trials: number[];
  /** Empty for all groups. */
  group?: string;
  /** batches, epoch, time (seconds since 1970) or metric:NAME. */
  x: string;
  from?: number;
  to?: number;
  width: number;
}

const TRIALS_AT_ONCE = 200;
const NAMES_AT_ONCE = 20;

interface Gathered {
  names: Set<string>;
  series: Promise<Series[]>;
}
const gathering = new Map<string, Gathered>();

/** Fetches one metric's series; requests made at the same moment are sent as one. */
export async function fetchSeries(part: Part, name: string): Promise<Series[]> {
  const key = JSON.stringify(part);
  let batch = gathering.get(key);
  if (!batch || batch.names.size >= NAMES_AT_ONCE) {
    const names = new Set<string>();
    const made: Gathered = { names, series: soon().then(() => leave(key, made, part)) };
    batch = made;
    gathering.set(key, made);
  }
  batch.names.add(name);
  return (await batch.series).filter((series) => series.name === name);
}

function leave(key: string, batch: Gathered, part: Part): Promise<Series[]> {
  if (gathering.get(key) === batch) gathering.delete(key);
  return ask(part, [...batch.names]);
}

const soon = () => new Promise<void>((go) => setTimeout(go));

async function ask(part: Part, names: string[]): Promise<Series[]> {
  const { trials, ...rest } = part;
  const parts: number[][] = [];
  for (let at = 0; at < trials.length; at += TRIALS_AT_ONCE) parts.push(trials.slice(at, at + TRIALS_AT_ONCE));
  const answers = await Promise.all(parts.map((ids) => get<{ series: Series[] }>(`series${query({ trialIds: ids, names, ...rest })}`)));
  return answers.flatMap((answer) => answer.series);
}

/** A metric's series, refetched when one of the topics changes; the previous ones stay until the new ones arrive. */
export function useSeries(part: Part, name: string, topics: string[]) {
  const series = useQuery({
    queryKey: ["series", part, name],
    queryFn: () => fetchSeries(part, name),
    enabled: part.trials.length > 0 && name !== "",
    placeholderData: keepPreviousData,
  });
  useAgain(topics, [["series", part, name]]);
  return series;
}

/** Buckets per line: as many as pixels for a few trials, fewer if hundreds share a chart. */
export const widthFor = (trials: number) => (trials > 1000 ? 60 : trials > 200 ? 120 : trials > 50 ? 300 : 1000);
