import { useSearchParams } from "react-router";

import { useData } from "../api/data";
import { Card } from "../ui/card";
import { PageHead, usePlace } from "../ui/page";
import { Loaded } from "../ui/status";
import { Explorer } from "./experiment/story";
import { Health } from "./health";
import { SystemViews } from "./system_views";

/** For operators: every event of the cluster, newest first, and the health of the platform. */
export function Events() {
  const [params] = useSearchParams();
  const position = params.get("event");
  const health = params.get("view") === "health";
  usePlace({ crumbs: health ? [{ name: "Events", to: "/system/events" }, { name: "Health" }] : [{ name: "Events" }] });
  return (
    <>
      <PageHead title="Events" beside="what was decided, by whom and why" />
      <SystemViews value={health ? "health" : "events"} />
      {health ? <Health /> : <Explorer kind="cluster" id="" topic="cluster" missing={position && <One position={position} />} />}
    </>
  );
}

/** A linked event may be far back, so it is fetched by itself. */
function One({ position }: { position: string }) {
  const answer = useData<{ subject: string; record: unknown; steps: { what: string }[] }>(`events/${position}`);
  return (
    <Card title={`Event ${position}`}>
      <Loaded answer={answer}>
        {({ record, steps }) => (
          <div className="stack">
            <p>{steps.map((step) => step.what).join(" ← ")}</p>
            <pre className="code" tabIndex={0}>
              {JSON.stringify(record, null, 2)}
            </pre>
          </div>
        )}
      </Loaded>
    </Card>
  );
}
