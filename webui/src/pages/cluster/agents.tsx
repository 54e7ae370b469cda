import { type CSSProperties, useMemo } from "react";

import type { Agent, Slot } from "../../api/types";
import { little } from "../../parts/format";
import { useOpen } from "../../ui/drawer";
import { Progress } from "../../ui/meter";
import { type Column, Table } from "../../ui/table";
import { Cut, Tag, Time } from "../../ui/text";
import { AgentDrawer } from "./agent";
import { heatOf, type Holder, isBusy, type Load, loadOf, slotsOf, type Use } from "./facts";
import { useSwitches } from "./switches";

/** The state of a slot in a word, so that colour is not the only sign. */
export const wordOf = (slot: Slot, holder: Holder | null) =>
  holder ? holder.name : isBusy(slot) ? "in use" : slot.draining ? "draining" : slot.enabled ? "free" : "disabled";

function Cells({ agent, of, lit, uses }: { agent: Agent; of: (slot: Slot) => Holder | null; lit: string | null; uses: Use[] }) {
  return (
    <span className="cells">
      {slotsOf(agent).map((slot) => {
        const holder = of(slot);
        const kind = isBusy(slot) ? "busy" : slot.draining ? "draining" : slot.enabled ? "free" : "off";
        const heat = heatOf(uses, agent.id, slot.id);
        const label = `Slot ${slot.id}: ${wordOf(slot, holder)}${heat === null ? "" : `, GPU ${Math.round(100 * heat)} % busy`}`;
        return (
          <i
            key={slot.id}
            className={`${kind} ${lit !== null && holder?.id !== lit ? "dim" : ""}`}
            style={holder ? ({ "--k": holder.colour, "--heat": `${Math.round(100 * (heat ?? 1))}%` } as CSSProperties) : undefined}
            title={label}
          >
            <span className="vh">{label}</span>
          </i>
        );
      })}
    </span>
  );
}

const [CELL_PX, LEAST_PX, MOST_PX] = [33, 100, 280];
/** The number of slots of the largest agent, which sets the width. */
const widest = (agents: Agent[]) =>
  Math.min(MOST_PX, Math.max(LEAST_PX, 20 + CELL_PX * Math.max(...agents.map((agent) => slotsOf(agent).length), 1)));

const held = (agent: Agent) =>
  agent.runLimits
    .filter((limit) => limit.holds)
    .map((limit) => limit.kind)
    .join(", ");

const amount = (value: number | null, unit: string) => (value === null ? <span className="ink3">–</span> : `${little(value)} ${unit}`);

/** One row per agent, one cell per slot; the fill of a cell is the utilization of its GPU. */
export function Agents({ agents, of, lit, uses }: { agents: Agent[]; of: (slot: Slot) => Holder | null; lit: string | null; uses: Use[] }) {
  const { items } = useSwitches();
  const [open, setOpen] = useOpen();
  const at = agents.findIndex((agent) => agent.id === open);
  const loads = useMemo(() => new Map(agents.map((agent) => [agent.id, loadOf(uses, agent.id)])), [agents, uses]);
  const load = (agent: Agent) => loads.get(agent.id)!;
  const some = (what: keyof Load) => [...loads.values()].some((load) => load[what] !== null);
  const columns: Column<Agent>[] = [
    {
      id: "name",
      head: "Agent",
      least: 120,
      name: true,
      value: (agent) => agent.id,
      cell: (agent) => (
        <span className="nowrap">
          <button type="button" className="as-link cut" title={agent.id} onClick={() => setOpen(agent.id)}>
            {agent.id}
          </button>{" "}
          {agent.draining ? <Tag>drains</Tag> : agent.enabled ? null : <Tag kind="bad">disabled</Tag>}
        </span>
      ),
    },
    {
      id: "pool",
      head: "Pool",
      width: 100,
      least: 72,
      most: 160,
      cell: (agent) => <Cut>{agent.resourcePools.join(", ")}</Cut>,
      value: (agent) => agent.resourcePools.join(),
    },
    {
      id: "slots",
      head: "Slots",
      width: widest(agents),
      small: true,
      sort: false,
      cell: (agent) => <Cells agent={agent} of={of} lit={lit} uses={uses} />,
    },
    {
      id: "used",
      head: "In use",
      width: 84,
      least: 72,
      num: true,
      small: true,
      value: (agent) => slotsOf(agent).filter(isBusy).length,
      cell: (agent) => `${slotsOf(agent).filter(isBusy).length} of ${slotsOf(agent).length}`,
    },
    ...(some("gpu")
      ? [
          {
            id: "gpu",
            head: "GPU use",
            width: 116,
            value: (agent: Agent) => load(agent).gpu,
            cell: (agent: Agent) => <Progress value={load(agent).gpu === null ? null : load(agent).gpu! / 100} />,
          },
          {
            id: "gpuMemory",
            head: "GPU memory",
            width: 100,
            num: true,
            value: (agent: Agent) => load(agent).gpuMemoryGb,
            cell: (agent: Agent) => amount(load(agent).gpuMemoryGb, "GB"),
          },
        ]
      : []),
    ...(some("cpuCores")
      ? [
          {
            id: "cpu",
            head: "CPU",
            width: 106,
            least: 98,
            num: true,
            value: (agent: Agent) => load(agent).cpuCores,
            cell: (agent: Agent) => amount(load(agent).cpuCores, "cores"),
          },
          {
            id: "memory",
            head: "Memory",
            width: 92,
            least: 80,
            num: true,
            value: (agent: Agent) => load(agent).memoryGb,
            cell: (agent: Agent) => amount(load(agent).memoryGb, "GB"),
          },
        ]
      : []),
    {
      id: "up",
      head: "Connected",
      width: 120,
      least: 104,
      cell: (agent) => <Time at={agent.registeredTime} />,
      value: (agent) => agent.registeredTime,
    },
    {
      id: "limits",
      head: "Limits of runs",
      width: 160,
      off: true,
      cell: (agent) => <Cut>{held(agent)}</Cut>,
      value: held,
    },
    { id: "address", head: "Address", width: 130, off: true, cell: (agent) => <Cut>{agent.addresses.join(", ")}</Cut> },
  ];
  return (
    <>
      <div style={{ minWidth: 0 }}>
        <Table
          name="Agents"
          rows={agents}
          id={(agent) => agent.id}
          columns={columns}
          actions={items}
          open={open}
          onOpen={(agent) => setOpen(agent.id)}
          store="agents"
        />
      </div>
      {at >= 0 && (
        <AgentDrawer
          agent={agents[at]!}
          of={of}
          word={wordOf}
          uses={uses}
          onClose={() => setOpen(null)}
          onStep={(by) => agents[at + by] && setOpen(agents[at + by]!.id)}
        />
      )}
    </>
  );
}
