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
        const said = `Slot ${slot.id}: ${wordOf(slot, holder)}${heat === null ? "" : `, GPU ${Math.round(100 * heat)} % busy`}`;
        return (
          <i
            key={slot.id}
            className={`${kind} ${lit !== null && holder?.id !== lit ? "dim" : ""}`}
            style={holder ? ({ "--k": holder.colour, "--heat": `${Math.round(100 * (heat ?? 1))}%` } as CSSProperties) : undefined}
            title={said}
          >
            <span className="vh">{said}</span>
          </i>
        );
      })}
    </span>
  );
}

const [CELL_PX, LEAST_PX, MOST_PX] = [33, 100, 280];
/** The number of slots of the largest agent, which sets the width. */
const widest = (agents: Agent[]) =>
  Math.min(MOST_PX, Math.max(LEAST_PX, 20 + CELL_PX * Math.max(...agents.map((one) => slotsOf(one).length), 1)));

const amount = (value: number | null, unit: string) => (value === null ? <span className="ink3">–</span> : `${little(value)} ${unit}`);

/** One row per agent, one cell per slot; the fill of a cell is the utilization of its GPU. */
export function Agents({ agents, of, lit, uses }: { agents: Agent[]; of: (slot: Slot) => Holder | null; lit: string | null; uses: Use[] }) {
  const { items } = useSwitches();
  const [open, setOpen] = useOpen();
  const at = agents.findIndex((one) => one.id === open);
  const loads = useMemo(() => new Map(agents.map((one) => [one.id, loadOf(uses, one.id)])), [agents, uses]);
  const load = (one: Agent) => loads.get(one.id)!;
  const some = (what: keyof Load) => [...loads.values()].some((one) => one[what] !== null);
  const columns: Column<Agent>[] = [
    {
      id: "name",
      head: "Agent",
      least: 120,
      name: true,
      value: (one) => one.id,
      cell: (one) => (
        <span className="nowrap">
          <button type="button" className="as-link cut" title={one.id} onClick={() => setOpen(one.id)}>
            {one.id}
          </button>{" "}
          {one.draining ? <Tag>drains</Tag> : one.enabled ? null : <Tag kind="bad">disabled</Tag>}
        </span>
      ),
    },
    {
      id: "pool",
      head: "Pool",
      width: 100,
      least: 72,
      most: 160,
      cell: (one) => <Cut>{one.resourcePools.join(", ")}</Cut>,
      value: (one) => one.resourcePools.join(),
    },
    {
      id: "slots",
      head: "Slots",
      width: widest(agents),
      small: true,
      sort: false,
      cell: (one) => <Cells agent={one} of={of} lit={lit} uses={uses} />,
    },
    {
      id: "used",
      head: "In use",
      width: 84,
      least: 72,
      num: true,
      small: true,
      value: (one) => slotsOf(one).filter(isBusy).length,
      cell: (one) => `${slotsOf(one).filter(isBusy).length} of ${slotsOf(one).length}`,
    },
    ...(some("gpu")
      ? [
          {
            id: "gpu",
            head: "GPU use",
            width: 116,
            value: (one: Agent) => load(one).gpu,
            cell: (one: Agent) => <Progress value={load(one).gpu === null ? null : load(one).gpu! / 100} />,
          },
          {
            id: "gpuMemory",
            head: "GPU memory",
            width: 100,
            num: true,
            value: (one: Agent) => load(one).gpuMemoryGb,
            cell: (one: Agent) => amount(load(one).gpuMemoryGb, "GB"),
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
            value: (one: Agent) => load(one).cpuCores,
            cell: (one: Agent) => amount(load(one).cpuCores, "cores"),
          },
          {
            id: "memory",
            head: "Memory",
            width: 92,
            least: 80,
            num: true,
            value: (one: Agent) => load(one).memoryGb,
            cell: (one: Agent) => amount(load(one).memoryGb, "GB"),
          },
        ]
      : []),
    {
      id: "up",
      head: "Connected",
      width: 120,
      least: 104,
      cell: (one) => <Time at={one.registeredTime} />,
      value: (one) => one.registeredTime,
    },
    { id: "address", head: "Address", width: 130, off: true, cell: (one) => <Cut>{one.addresses.join(", ")}</Cut> },
  ];
  return (
    <>
      <div style={{ minWidth: 0 }}>
        <Table
          name="Agents"
          rows={agents}
          id={(one) => one.id}
          columns={columns}
          actions={items}
          open={open}
          onOpen={(one) => setOpen(one.id)}
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
