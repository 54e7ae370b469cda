import { FileClock, Logs, Server } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { useRights } from "../../api/rights";
import { Card } from "../../ui/card";
import { Menu } from "../../ui/menu";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { Views } from "../../ui/tabs";
import { Agents } from "./agents";
import { Answer } from "./answer";
import { AwayCard } from "./away";
import { useCluster } from "./facts";
import { Holders } from "./holders";
import { Pools } from "./pools";
import { Usage } from "./usage";
import "./cluster.css";

/** What is free, what works and for whom, what is idle and what is broken. */
export function Cluster() {
  usePlace({ crumbs: [{ name: "Agents" }] });
  const { agents, pools, away, held, uses } = useCluster();
  const [params, setParams] = useSearchParams();
  const [lit, setLit] = useState<string | null>(null);
  const unread = useRights()("read_log");
  const pool = params.get("pool") ?? "";
  const all = agents.data?.agents ?? [];
  const shown = pool ? all.filter((agent) => agent.resourcePools.includes(pool)) : all;
  const poolWord = pools.length === 1 ? "1 pool" : `${pools.length} pools`;
  return (
    <>
      <PageHead
        title="Agents"
        beside={agents.data && `${all.length} in ${poolWord}`}
        actions={
          <Menu
            label="More"
            kind="plain"
            small={false}
            items={[
              { name: "Events of the cluster", icon: <FileClock />, not: unread, to: "/system/events" },
              { name: "Log of the cluster", icon: <Logs />, not: unread, href: "/api/v1/master/logs" },
            ]}
          />
        }
      />
      {pools.length > 1 && (
        <Views
          name="Pools"
          value={pool}
          views={[{ id: "", name: "All pools" }, ...pools.map((pool) => ({ id: pool.name, name: pool.name, count: pool.slotsUsed }))]}
          onChange={(id) => setParams(id ? { pool: id } : {}, { replace: true })}
        />
      )}
      <Answer agents={shown} pools={pools.filter((other) => !pool || other.name === pool)} away={away.length} uses={uses} />
      <Loaded answer={agents}>
        {() =>
          all.length ? (
            <div className="cols" style={{ "--t": "minmax(0, 1fr) 252px" } as React.CSSProperties}>
              <Agents agents={shown} of={held.of} lit={lit} uses={uses} />
              <Holders list={held.list} lit={lit} onLight={setLit} />
            </div>
          ) : (
            <Card>
              <Empty icon={<Server className="l" />} title="No agent is here" command="det deploy local cluster-up">
                Trials wait until an agent connects.
              </Empty>
            </Card>
          )
        }
      </Loaded>
      {away.length > 0 && <AwayCard agents={away} />}
      <Pools pools={pools} />
      <Usage />
    </>
  );
}
