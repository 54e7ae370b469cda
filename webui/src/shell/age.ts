/** How old the data on the pages is, judged from all signals. */

import { type Reason, useHealth } from "../api/health";
import { useLost } from "../api/live";

/** Conditions under which pages show old data. */
const OLD = new Set(["log_lags", "database_fails", "broker_away"]);

export interface Age {
  kind: "live" | "stale" | "lost";
  since: Date | null;
  why: string;
}

/** The first that applies: the gateway is silent, the live stream is broken, the gateway's read side lags. */
export function ageOf(silentSince: Date | null, lost: Date | null, reasons: Reason[]): Age {
  if (silentSince) return { kind: "lost", since: silentSince, why: "The gateway does not answer." };
  if (lost) return { kind: "lost", since: lost, why: "Live updates are interrupted; this page refreshes every 5 s." };
  const old = reasons.filter((one) => OLD.has(one.condition) && one.program.startsWith("gateway"));
  const first = old.toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since))[0];
  return first
    ? { kind: "stale", since: new Date(first.since), why: `${first.message}. ${first.action}` }
    : { kind: "live", since: null, why: "" };
}

export function useAge(): Age {
  const { health, answeredAt, silent } = useHealth();
  return ageOf(silent ? (answeredAt ?? new Date()) : null, useLost(), health?.reasons ?? []);
}
