import { ListOrdered } from "lucide-react";
import { useNavigate, useParams } from "react-router";

import { query } from "../../api/client";
import { useData } from "../../api/data";
import type { Job } from "../../api/types";
import { Card } from "../../ui/card";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { Views } from "../../ui/tabs";
import { isWaiting, type Pool } from "./facts";
import { Lists } from "./lists";
import "./queue.css";

/** The jobs of all pools or of one: what waits, for what and until when, and what runs. */
export function Queue() {
  const pool = useParams().pool;
  usePlace({ crumbs: [{ name: "Queue", to: "/jobs" }, ...(pool ? [{ name: pool }] : [])] });
  const answer = useData<{ jobs: Job[] }>(`job-queues${query({ resourcePool: pool })}`, ["queue", "experiments", "cluster"]);
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["queue", "cluster"]);
  const navigate = useNavigate();
  const jobs = answer.data?.jobs ?? [];
  const waiting = jobs.filter(isWaiting).length;
  const running = jobs.length - waiting;
  const all = pools.data?.resourcePools ?? [];
  return (
    <>
      <PageHead
        title="Queue"
        beside={answer.data && `${waiting} ${waiting === 1 ? "waits" : "wait"}, ${running} ${running === 1 ? "runs" : "run"}`}
      />
      {(all.length > 1 || pool) && (
        <Views
          name="Pools"
          value={pool ?? ""}
          views={[{ id: "", name: "All pools" }, ...all.map((pool) => ({ id: pool.name, name: pool.name, count: pool.stats.queuedCount }))]}
          onChange={(id) => navigate(id ? `/resourcepool/${encodeURIComponent(id)}` : "/jobs")}
        />
      )}
      <Loaded answer={answer}>
        {({ jobs }) =>
          jobs.length ? (
            <Lists jobs={jobs} pools={all} several={!pool && all.length > 1} />
          ) : (
            <Card>
              <Empty
                icon={<ListOrdered className="l" />}
                title="Nothing is waiting or running"
                command="det experiment create config.yaml ."
              >
                Jobs appear here from submission until they end.
              </Empty>
            </Card>
          )
        }
      </Loaded>
    </>
  );
}
