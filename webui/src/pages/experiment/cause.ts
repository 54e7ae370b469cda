/** Why an experiment or trial failed: the first error in time over all ranks. */

import { useQuery } from "@tanstack/react-query";

import { get } from "../../api/client";
import type { Trial } from "../../api/types";
import { failedRanks } from "../../parts/logs/ranks";

interface Told {
  rankId: number | null;
  words: string;
  first: { id: string };
  said: { id: string; log: string };
  place: { file: string; line: number } | null;
  ranks: { rankId: number | null; failedTimestamp: string | null }[];
}

export interface Why {
  /** Such as `Rank 1 failed first`. */
  who: string;
  /** The log line that says what was wrong. */
  line: string;
  place: string;
  /** Address of this line in the log. */
  to: string;
}

/** The path without the working directory that the platform created. */
export const shortFile = (path: string) => path.replace(/^.*\/workdir\//, "");

export const logOf = (trial: Trial) => `/experiments/${trial.experimentId}/trials/${trial.id}/logs`;

/** Null while unknown, and if nothing failed. */
export function useWhy(trial: Trial | undefined): Why | null {
  const failed = trial?.state === "STATE_ERROR" ? trial : undefined;
  const answer = useQuery({
    queryKey: ["cause", failed?.id, failed?.restarts, failed?.endTime],
    queryFn: () => get<{ cause: Told | null }>(`trials/${failed!.id}/logs/cause`),
    enabled: failed !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    retry: 1,
  });
  if (!failed) return null;
  const cause = answer.data?.cause;
  if (!cause) return answer.isPending ? null : { who: "It failed", line: failed.stateReason, place: "", to: logOf(failed) };
  const several = failedRanks(cause.ranks) > 1;
  return {
    who: cause.rankId === null ? "It failed" : `Rank ${cause.rankId} failed${several ? " first" : ""}`,
    line: cause.said.log,
    place: cause.place ? `${shortFile(cause.place.file)}, line ${cause.place.line}` : "",
    to: `${logOf(failed)}?line=${cause.said.id}`,
  };
}

/** Of several failed trials, the one that failed first. */
export const firstFailed = (trials: Trial[]): Trial | undefined =>
  trials
    .filter((trial) => trial.state === "STATE_ERROR")
    .sort((a, b) => Date.parse(a.endTime ?? "") - Date.parse(b.endTime ?? "") || a.id - b.id)[0];
