/** How old the data on the pages is, judged from all signals. */

import { type Reason, useHealth } from "../api/health";
import { useLost } from "../api/live";

/** Conditions under which pages show old data. */
const OLD = new Set(["log_lags", "database_fails", "broker_away", "event_fails", "rebuilding"]);
/** Events that wait longer than this make the data old. With the two seconds between two looks, it is told within five. */
const LATE_S = 2;

export interface Age {
  kind: "live" | "stale" | "lost";
  since: Date | null;
  why: string;
}

/** The first that applies: the gateway is silent, the live stream is broken, the gateway's read side lags. */
export function ageOf(silentSince: Date | null, lost: Date | null, reasons: Reason[], readUpTo: Date | null = null): Age {
  if (silentSince) return { kind: "lost", since: silentSince, why: "The gateway does not answer." };
  if (lost) return { kind: "lost", since: lost, why: "Live updates are interrupted; this page refreshes every 5 s." };
  const old = reasons.filter((reason) => OLD.has(reason.condition) && reason.program.startsWith("gateway"));
  const first = old.toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since))[0];
  if (first) {
    const since = Math.min(Date.parse(first.since), readUpTo?.getTime() ?? Number.POSITIVE_INFINITY);
    return { kind: "stale", since: new Date(since), why: `${first.message}. ${first.action}` };
  }
  return readUpTo
    ? { kind: "stale", since: readUpTo, why: "The gateway has not read or saved what happened since. It catches up by itself." }
    : { kind: "live", since: null, why: "" };
}

/** Since when events wait, if they wait too long. */
export const readUpTo = (answeredAt: Date | null, lateSeconds = 0): Date | null =>
  answeredAt && lateSeconds >= LATE_S ? new Date(answeredAt.getTime() - lateSeconds * 1000) : null;

export function useAge(): Age {
  const { health, answeredAt, silent } = useHealth();
  const old = readUpTo(answeredAt, health?.lateSeconds);
  return ageOf(silent ? (answeredAt ?? new Date()) : null, useLost(), health?.reasons ?? [], old);
}
