import { useData } from "../../api/data";
import { Card, Copyable, Loaded } from "../../parts/basics";

interface Step {
  position: number;
  time: string;
  actor: string;
  what: string;
  reason: string;
}
interface Told {
  state: string;
  waitsFor?: string;
  steps: Step[];
  more: boolean;
}

/** Why it is as it is, and everything that happened: read from the log of events. */
export function Story({ kind, id, topic }: { kind: string; id: number | string; topic: string }) {
  const why = useData<Told>(`why/${kind}/${id}`, [topic]);
  const all = useData<Told>(`why/${kind}/${id}?all=true&limit=500`, [topic]);
  return (
    <>
      <Card title="Why it is as it is">
        <Loaded found={why}>
          {(told) => (
            <>
              {told.waitsFor && <p className="bad">{told.waitsFor}</p>}
              <Steps steps={told.steps} />
            </>
          )}
        </Loaded>
      </Card>
      <Card title="Everything that happened" more={<Copyable text={`det why ${kind} ${id} --all`} />}>
        <Loaded found={all}>{(told) => <Steps steps={told.steps} />}</Loaded>
      </Card>
    </>
  );
}

const Steps = ({ steps }: { steps: Step[] }) => (
  <ol className="story">
    {steps.map((step) => (
      <li key={step.position}>
        <time title={step.time}>{new Date(step.time).toLocaleTimeString()}</time>
        <span>
          {step.what}
          {step.reason && <span className="soft">: {step.reason}</span>} <span className="actor">{step.actor}</span>
        </span>
      </li>
    ))}
  </ol>
);
