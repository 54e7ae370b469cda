import { Link } from "react-router";

import { useData } from "../../api/data";
import { Card, Loaded } from "../../parts/basics";
import type { Step } from "./story";

/** What was deleted says when and by whom: the log remembers it. */
export function Gone({ kind, id }: { kind: string; id: number | string }) {
  const found = useData<{ state: string; steps: Step[] }>(`why/${kind}/${id}`);
  return (
    <Card title={`There is no ${kind} ${id}`}>
      <Loaded found={found}>
        {({ steps }) => (
          <ul className="plain">
            {steps.slice(0, 3).map((step) => (
              <li key={step.position}>
                {step.what} on {new Date(step.time).toLocaleString()}
                {step.reason && `: ${step.reason}`}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      <p>
        <Link to="/experiments">All experiments</Link>
      </p>
    </Card>
  );
}
