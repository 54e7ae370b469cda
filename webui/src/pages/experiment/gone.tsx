import { actorName, exact, sentence } from "../../parts/format";
import { Link } from "react-router";

import { useData } from "../../api/data";
import { Card } from "../../ui/card";
import { PageHead, usePlace } from "../../ui/page";
import type { Step } from "./story";

/** A deleted object: says when and by whom it was deleted, from the event log. */
export function Gone({ kind, id }: { kind: string; id: number | string }) {
  const answer = useData<{ state: string; steps: Step[] }>(`why/${kind}/${id}`);
  usePlace({ crumbs: [{ name: "Experiments", to: "/experiments" }, { name: `No ${kind} ${id}` }] });
  return (
    <>
      <PageHead title={`There is no ${kind} ${id}`} />
      <Card>
        {answer.error ? <p>It does not exist yet, or it belongs to another cluster.</p> : null}
        <ul>
          {answer.data?.steps
            .filter((step, at) => at === 0 || step.actor.startsWith("user:") || step.reason.includes(" by "))
            .map((step) => (
              <li key={step.position}>
                {sentence(step.what)} on {exact(step.time)}
                {step.reason && `: ${step.reason}`}
                {!step.reason.endsWith(` by ${actorName(step.actor)}`) && <span className="actor"> · {actorName(step.actor)}</span>}
              </li>
            ))}
        </ul>
        <p>
          <Link className="link" to="/experiments">
            All experiments
          </Link>
        </p>
      </Card>
    </>
  );
}
