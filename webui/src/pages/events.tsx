import { useData } from "../api/data";
import { Card, Loaded } from "../parts/basics";
import { Explorer } from "./experiment/story";
import { useSearchParams } from "react-router";

/** The operator's window: every event of the cluster, the newest first. */
export function Events() {
  const position = useSearchParams()[0].get("event");
  return (
    <>
      <h1>Events</h1>
      {position && <One position={position} />}
      <Explorer kind="cluster" id="" topic="cluster" />
    </>
  );
}

/** An event that somebody linked to may be far back. */
function One({ position }: { position: string }) {
  const found = useData<{ subject: string; record: unknown; steps: { what: string }[] }>(`events/${position}`);
  return (
    <Card title={`Event ${position}`}>
      <Loaded found={found}>
        {({ record, steps }) => (
          <>
            <p>{steps.map((step) => step.what).join(" ← ")}</p>
            <pre tabIndex={0}>{JSON.stringify(record, null, 2)}</pre>
          </>
        )}
      </Loaded>
    </Card>
  );
}
