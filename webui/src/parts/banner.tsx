import { type Reason, useHealth } from "../api/health";
import { exact, sentence } from "./format";

const SHOWN = 2;
const HEADS = {
  up: "",
  degraded: "Something is wrong with the cluster.",
  down: "The cluster is not making decisions. Running scripts keep training.",
};

/** The time of day, with the date if it is not today. */
function moment(at: Date): string {
  const today = at.toDateString() === new Date().toDateString();
  return today ? at.toLocaleTimeString("en-GB") : at.toLocaleString("en-GB");
}

const Line = ({ reason }: { reason: Reason }) => (
  <li>
    {reason.condition === "nobody_leads" ? sentence(reason.message) : `${sentence(reason.program)}: ${reason.message}`}, since{" "}
    <time dateTime={reason.since} title={exact(reason.since)}>
      {moment(new Date(reason.since))}
    </time>
    . <span className="ink2">{reason.action}</span>
  </li>
);

/** What is wrong, on every page, for as long as it lasts. */
export function Banner() {
  const { health, answeredAt, silent } = useHealth();
  if (silent)
    return (
      <section className="banner down" role="alert">
        <strong>{answeredAt ? `The gateway has not answered since ${moment(answeredAt)}.` : "The gateway does not answer."}</strong>{" "}
        {answeredAt && `This page shows data from ${moment(answeredAt)}. `}
        The page retries every few seconds. Running scripts keep training.
      </section>
    );
  if (!health || health.status === "up") return null;
  const rest = health.reasons.slice(SHOWN);
  return (
    <section className={`banner ${health.status}`} role="status" aria-label="Health of the cluster">
      <strong>{HEADS[health.status]}</strong>
      <ul>
        {health.reasons.slice(0, SHOWN).map((one) => (
          <Line key={`${one.condition} ${one.about} ${one.program}`} reason={one} />
        ))}
      </ul>
      {rest.length > 0 && (
        <details>
          <summary>{rest.length} more</summary>
          <ul>
            {rest.map((one) => (
              <Line key={`${one.condition} ${one.about} ${one.program}`} reason={one} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
