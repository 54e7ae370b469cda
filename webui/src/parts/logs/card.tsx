/**
 * The cause of a failure, above the log: who failed first, at which line, where in the code, and what happened to the
 * other ranks.
 */

import { ArrowRight, FileCode2, Gauge } from "lucide-react";

import { Button, LinkButton } from "../../ui/button";
import { StateIcon } from "../../ui/state";
import { CopyButton } from "../../ui/text";
import { type Cause, elapsed, headline, lead, type RankEnd, shortPath } from "./cause";
import { clock } from "./line";

const MOST_RANKS = 32;
/** Position of the first failure along the bars, as a share of their width. */
const FIRST_AT = 0.3;
const LEAST_MS = 1000;

interface Props {
  cause: Cause;
  onLine: (id: string) => void;
  /** Addresses of the code at the failure, and of the machine metrics at that time. */
  code?: string;
  machine?: string;
}

export function CauseCard({ cause, onLine, code, machine }: Props) {
  const { place, before } = cause;
  const facts = factsOf(cause);
  return (
    <section className="card cause" aria-label="Cause of the failure">
      <div>
        <h2>
          <StateIcon state="ERROR" /> {headline(cause)}
        </h2>
        <p className="quote" title={cause.said.log}>
          {cause.said.log}
        </p>
        <p className="sm ink2 facts">{facts.join(" · ")}</p>
        {before && (
          <p className="sm ink2 cut" title={before.log}>
            {lead(before.timestamp, cause.first.timestamp)}: <span className="mono">{before.log}</span>
          </p>
        )}
        <div className="toolbar">
          <Button small icon={<ArrowRight />} onClick={() => onLine(cause.said.id)}>
            Log line {cause.said.number.toLocaleString("en")}
          </Button>
          {place && code && (
            <LinkButton small icon={<FileCode2 />} to={code}>
              Open {place.file.split("/").at(-1)}, line {place.line}
            </LinkButton>
          )}
          {machine && (
            <LinkButton small icon={<Gauge />} to={machine}>
              The machine at that time
            </LinkButton>
          )}
          <CopyButton label="Copy report" text={[headline(cause), cause.said.log, ...facts, location.href].join("\n")} />
        </div>
      </div>
      {cause.ranks.length > 1 && <Ranks cause={cause} />}
    </section>
  );
}

function factsOf({ place, agentId, said: line }: Cause): string[] {
  const at =
    place &&
    `${shortPath(place.file)}, line ${place.line}${place.function && place.function !== "<module>" ? `, in ${place.function}` : ""}`;
  return [at, agentId, clock(line.timestamp)].filter((fact): fact is string => Boolean(fact));
}

/** When each rank last wrote a line, as bars over the last moments. */
function Ranks({ cause }: { cause: Cause }) {
  const named = cause.ranks.filter((rank) => rank.rankId !== null);
  const ended = (rankEnd: RankEnd) => Date.parse(rankEnd.failedTimestamp ?? rankEnd.lastTimestamp);
  const began = Date.parse(cause.first.timestamp);
  const last = Math.max(...named.map(ended), began + LEAST_MS * (1 - FIRST_AT));
  const span = (last - began) / (1 - FIRST_AT);
  const share = (rankEnd: RankEnd) => Math.min(Math.max((ended(rankEnd) - (last - span)) / span, 0), 1);
  const after = named.filter((rankEnd) => rankEnd.rankId !== cause.rankId && ended(rankEnd) >= began).length;
  const isFirst = (rankEnd: RankEnd) => rankEnd.rankId === cause.rankId;
  const shown =
    named.length > MOST_RANKS
      ? [...named.filter(isFirst), ...named.filter((rankEnd) => !isFirst(rankEnd)).slice(0, MOST_RANKS - 1)]
      : named;
  return (
    <div>
      <p className="sm over">
        <b className="b">
          {named.length} ranks over the last {elapsed(new Date(last - span).toISOString(), new Date(last).toISOString())}
        </b>
        {after > 0 && cause.rankId !== null && (
          <span className="ink3">
            {after} ended after rank {cause.rankId}
          </span>
        )}
      </p>
      <ul className="rks">
        {shown.map((rankEnd) => {
          const label = `rank ${rankEnd.rankId}, ${rankEnd.agentId ?? "somewhere"}: ${rankEnd.failedTimestamp ? "failed" : "last line"} at ${clock(rankEnd.failedTimestamp ?? rankEnd.lastTimestamp)}`;
          return (
            <li key={rankEnd.rankId} className={isFirst(rankEnd) ? "first" : ""} title={label}>
              <span aria-hidden>{rankEnd.rankId}</span>
              <em role="img" aria-label={label}>
                <i style={{ width: `${share(rankEnd) * 100}%` }} />
                <b style={{ left: `${share(rankEnd) * 100}%` }} />
              </em>
            </li>
          );
        })}
      </ul>
      {named.length > shown.length && <p className="sm ink3">and {named.length - shown.length} more</p>}
    </div>
  );
}
