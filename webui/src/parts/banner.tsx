import { type Reason, useHealth } from "../api/health";
import { exact, moment, sentence } from "./format";

const SHOWN = 2;
const HEADS = {
  up: "",
  degraded: "Something is wrong with the cluster.",
  down: "The cluster is not making decisions. Running scripts keep training.",
};

const Line = ({ reason }: { reason: Reason }) => (
  <li>
    {reason.condition === "nobody_leads" ? sentence(reason.message) : `${sentence(reason.program)}: ${reason.message}`}, since{" "}
    <time dateTime={reason.since} title={exact(reason.since)}>
      {moment(reason.since)}
    </time>
    . <span className="ink2">{reason.action}</span>
  </li>
);

/** What is wrong, on every page, for as long as it lasts. */
export function Banner() {
  const { health, answeredAt, silent } = useHealth();
  if (silent) {
    const when = answeredAt && moment(answeredAt.toISOString());
    return (
      <section className="banner down" role="alert">
        <strong>{when ? `The gateway has not answered since ${when}.` : "The gateway does not answer."}</strong>{" "}
        {when && `This page shows data from ${when}. `}
        The page retries every few seconds. Running scripts keep training.
      </section>
    );
  }
  if (!health || health.status === "up") return null;
  const rest = health.reasons.slice(SHOWN);
  return (
    <section className={`banner ${health.status}`} role="status" aria-label="Health of the cluster">
      <strong>{HEADS[health.status]}</strong>
      <ul>
        {health.reasons.slice(0, SHOWN).map((reason) => (
          <Line key={`${reason.condition} ${reason.about} ${reason.program}`} reason={reason} />
        ))}
      </ul>
      {rest.length > 0 && (
        <details>
          <summary>{rest.length} more</summary>
          <ul>
            {rest.map((reason) => (
              <Line key={`${reason.condition} ${reason.about} ${reason.program}`} reason={reason} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
