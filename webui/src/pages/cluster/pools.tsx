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
      cell: (one) => <Cut title={one.description || one.name}>{one.name}</Cut>,
      value: (one) => one.name,
    },
    { id: "scheduler", head: "Scheduler", width: 130, cell: (one) => words(one.schedulerType, "SCHEDULER_TYPE_") },
    { id: "fitting", head: "Fitting", width: 100, cell: (one) => words(one.schedulerFittingPolicy, "FITTING_POLICY_") },
    { id: "agents", head: "Agents", width: 80, num: true, cell: (one) => one.numAgents, value: (one) => one.numAgents },
    { id: "per", head: "Slots per agent", width: 120, num: true, cell: (one) => one.slotsPerAgent, value: (one) => one.slotsPerAgent },
    {
      id: "used",
      head: "Slots in use",
      width: 110,
      num: true,
      small: true,
      cell: (one) => `${one.slotsUsed} of ${one.slotsAvailable}`,
      value: (one) => one.slotsUsed,
    },
    {
      id: "queue",
      head: "Queue",
      width: 150,
      cell: (one) => (
        <Link className="link" to={`/resourcepool/${encodeURIComponent(one.name)}`}>
          {one.stats.scheduledCount} run, {one.stats.queuedCount} wait
        </Link>
      ),
    },
  ];
  return (
    <Card title="Resource pools" flush>
      <Table name="Resource pools" rows={pools} id={(one) => one.name} columns={columns} />
    </Card>
  );
}
