import { Link } from "react-router";

import { Card } from "../../ui/card";
import { type Column, Table } from "../../ui/table";
import { Cut } from "../../ui/text";
import type { Pool } from "./facts";

export function Pools({ pools }: { pools: Pool[] }) {
  const words = (text: string, of: string) => text.replace(of, "").toLowerCase().replaceAll("_", " ");
  const columns: Column<Pool>[] = [
    {
      id: "name",
      head: "Pool",
      name: true,
      cell: (pool) => <Cut title={pool.description || pool.name}>{pool.name}</Cut>,
      value: (pool) => pool.name,
    },
    { id: "scheduler", head: "Scheduler", width: 130, cell: (pool) => words(pool.schedulerType, "SCHEDULER_TYPE_") },
    { id: "fitting", head: "Fitting", width: 100, cell: (pool) => words(pool.schedulerFittingPolicy, "FITTING_POLICY_") },
    { id: "agents", head: "Agents", width: 80, num: true, cell: (pool) => pool.numAgents, value: (pool) => pool.numAgents },
    { id: "per", head: "Slots per agent", width: 120, num: true, cell: (pool) => pool.slotsPerAgent, value: (pool) => pool.slotsPerAgent },
    {
      id: "used",
      head: "Slots in use",
      width: 110,
      num: true,
      small: true,
      cell: (pool) => `${pool.slotsUsed} of ${pool.slotsAvailable}`,
      value: (pool) => pool.slotsUsed,
    },
    {
      id: "queue",
      head: "Queue",
      width: 150,
      cell: (pool) => (
        <Link className="link" to={`/resourcepool/${encodeURIComponent(pool.name)}`}>
          {pool.stats.scheduledCount} run, {pool.stats.queuedCount} wait
        </Link>
      ),
    },
  ];
  return (
    <Card title="Resource pools" flush>
      <Table name="Resource pools" rows={pools} id={(pool) => pool.name} columns={columns} />
    </Card>
  );
}
