/** How an experiment spent its time, and when it will end. */

import { useRef } from "react";

import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { isOver } from "../../parts/format";

interface Spent {
  stretches: { what: string; since: string; until: string | null }[];
  seconds: Record<string, number>;
}

const REST_MS = 2000;

export const useSpent = (id: number) => useData<Spent>(`experiments/${id}/timeline`, [`experiment.${id}`], true, REST_MS).data;

export interface Forecast {
  /** Seconds from now. */
  left: number;
  /** Half the difference between the two estimates, in seconds. */
  spread: number;
}

/**
 * Estimates the time left from the overall pace and from the pace since the page was opened: the mean, and the spread.
 */
export function forecast(progress: number, ranS: number, lately: { gained: number; tookS: number } | null): Forecast | null {
  if (progress <= 0 || progress >= 1 || ranS <= 0) return null;
  const whole = ((1 - progress) * ranS) / progress;
  const recent = lately && lately.gained > 0 ? ((1 - progress) * lately.tookS) / lately.gained : whole;
  return { left: (whole + recent) / 2, spread: Math.abs(whole - recent) / 2 };
}

const LEAST_PROGRESS = 0.02;

export function useForecast(experiment: Experiment, spent: Spent | undefined): Forecast | null {
  const seen = useRef<[at: number, progress: number] | null>(null);
  const { progress } = experiment;
  if (progress === null || isOver(experiment.state) || experiment.state === "STATE_PAUSED" || progress < LEAST_PROGRESS || !spent)
    return null;
  const now = Date.now() / 1000;
  seen.current ??= [now, progress];
  const [since, from] = seen.current;
  return forecast(progress, spent.seconds.ran ?? 0, { gained: progress - from, tookS: now - since });
}
