import { useQueryClient } from "@tanstack/react-query";
import { Ban, CirclePlay, FileClock, Logs, Server, ShieldCheck, Timer } from "lucide-react";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";

import { send } from "../../api/client";
import { useMe } from "../../api/data";
import type { Agent, Slot } from "../../api/types";
import { Card } from "../../ui/card";
import { ask } from "../../ui/dialog";
import { useOpen } from "../../ui/drawer";
import { Figure, Figures } from "../../ui/figures";
import { Menu, type MenuItems } from "../../ui/menu";
import { Meter } from "../../ui/meter";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { Views } from "../../ui/tabs";
import { Cut, Tag, Time } from "../../ui/text";
import { failed, toast } from "../../ui/toast";
import { AgentDrawer } from "./agent";
import { AwayCard } from "./away";
import { type Holder, useCluster } from "./facts";
import { Usage } from "./usage";
import "./cluster.css";

const slotsOf = (agent: Agent) => Object.values(agent.slots);
const isBusy = (slot: Slot) => slot.container !== null;

/** Whether something can be done with an agent or a slot, and how it is said. */
export function useSwitches() {
  const client = useQueryClient();
  const admin = useMe().data?.user.admin ?? false;
  const not = admin ? "" : "administrators may";
  const put = async (path: string, verb: string, body: object | undefined, said: string) => {
    try {
      await send("POST", `${path}/${verb}`, body);
      toast({ text: said });
    } catch (error) {
      failed(error);
    }
    void client.invalidateQueries();
  };
  const disable = async (agent: Agent) => {
    const busy = slotsOf(agent).filter(isBusy).length;
    const text = `What runs on ${busy} of its slots ends at once and is started again elsewhere. Drain lets it come to its end.`;
    if (busy && !(await ask({ title: `Disable ${agent.id}?`, text, verb: "Disable", danger: true }))) return;
    await put(`agents/${agent.id}`, "disable", undefined, `Disabled ${agent.id}`);
  };
  const items = (agent: Agent): MenuItems => [
    {
      name: "Drain",
      icon: <Timer />,
      not: not || (agent.enabled ? "" : "is off already"),
      act: () => void put(`agents/${agent.id}`, "disable", { drain: true }, `${agent.id} drains: what runs there comes to its end`),
    },
    {
      name: "Enable",
      icon: <CirclePlay />,
      not: not || (agent.enabled ? "is enabled" : ""),
      act: () => void put(`agents/${agent.id}`, "enable", undefined, `Enabled ${agent.id}`),
    },
    null,
    {
      name: "Disable now",
      icon: <Ban />,
      danger: true,
      not: not || (agent.enabled || agent.draining ? "" : "is disabled"),
      act: () => void disable(agent),
    },
  ];
  return { put, items, not: admin ? "" : "Only administrators may" };
}

export function Cluster() {
  usePlace({ crumbs: [{ name: "Agents" }] });
  const { agents, pools, away, held } = useCluster();
  const [params, setParams] = useSearchParams();
  const [lit, setLit] = useState<string | null>(null);
  const admin = useMe().data?.user.admin ?? false;
  const pool = params.get("pool") ?? "";
  const all = agents.data?.agents ?? [];
  const shown = pool ? all.filter((one) => one.resourcePools.includes(pool)) : all;
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
              { name: "Events of the cluster", icon: <FileClock />, to: "/system/events" },
              { name: "Audit: who did what", icon: <ShieldCheck />, not: admin ? "" : "administrators may", to: "/system/audit" },
              { name: "Log of the cluster", icon: <Logs />, href: "/api/v1/master/logs" },
            ]}
          />
        }
      />
      {pools.length > 1 && (
        <Views
          name="Pools"
          value={pool}
          views={[{ id: "", name: "All pools" }, ...pools.map((one) => ({ id: one.name, name: one.name, count: one.slotsUsed }))]}
          onChange={(id) => setParams(id ? { pool: id } : {}, { replace: true })}
        />
      )}
      <Answer agents={shown} pools={pools.filter((one) => !pool || one.name === pool)} away={away.length} />
      <Loaded found={agents}>
        {() =>
          all.length ? (
            <div className="cols" style={{ "--t": "minmax(0, 1fr) 252px" } as React.CSSProperties}>
              <Agents agents={shown} of={held.of} lit={lit} />
              <On list={held.list} lit={lit} onLight={setLit} />
            </div>
          ) : (
            <Card>
              <Empty icon={<Server className="l" />} title="No agent is here" command="det deploy local cluster-up">
                Trials wait until one comes.
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

function Answer({ agents, pools, away }: { agents: Agent[]; pools: ReturnType<typeof useCluster>["pools"]; away: number }) {
  const slots = agents.flatMap(slotsOf);
  const busy = slots.filter(isBusy).length;
  const draining = slots.filter((one) => one.draining).length;
  const off = slots.filter((one) => !one.enabled && !one.draining).length;
  const waiting = pools.reduce((sum, one) => sum + one.stats.queuedCount, 0);
  const running = pools.reduce((sum, one) => sum + one.stats.scheduledCount, 0);
  const share = (many: number) => (slots.length ? many / slots.length : 0);
  const whole = agents.filter((one) => one.enabled && slotsOf(one).every((slot) => slot.enabled && !isBusy(slot))).length;
  return (
    <Figures>
      <Figure
        name="Slots"
        value={busy}
        unit={`of ${slots.length} in use`}
        note={[draining && `${draining} drain`, off && `${off} disabled`].filter(Boolean).join(", ") || "all can be used"}
      >
        <Meter
          label={`${busy} of ${slots.length} slots in use`}
          parts={[
            { share: share(busy), colour: "var(--running)", title: `${busy} in use` },
            { share: share(draining), colour: "var(--paused)", title: `${draining} drain` },
            { share: share(off), colour: "var(--off)", title: `${off} disabled` },
          ]}
        />
      </Figure>
      <Figure
        name="Wholly free"
        value={whole}
        unit={whole === 1 ? "agent" : "agents"}
        note={`${slots.length - busy - draining - off} free slots in all`}
      />
      <Figure name="Waiting" value={waiting} unit={waiting === 1 ? "job" : "jobs"} to="/jobs" note={`${running} run`} />
      <Figure
        name="Lost agents"
        value={away}
        unit="in the last week"
        bad={away > 0}
        note={away ? "what became of their trials is below" : "none was lost"}
      />
    </Figures>
  );
}

/** What a slot is at, in a word; colour is the second sign. */
const wordOf = (slot: Slot, holder: Holder | null) =>
  holder ? holder.name : isBusy(slot) ? "in use" : slot.draining ? "draining" : slot.enabled ? "free" : "disabled";

function Cells({ agent, of, lit }: { agent: Agent; of: (slot: Slot) => Holder | null; lit: string | null }) {
  return (
    <span className="cells">
      {slotsOf(agent).map((slot) => {
        const holder = of(slot);
        const kind = isBusy(slot) ? "busy" : slot.draining ? "draining" : slot.enabled ? "free" : "off";
        const said = `Slot ${slot.id}: ${wordOf(slot, holder)}`;
        return (
          <i
            key={slot.id}
            className={`${kind} ${lit !== null && holder?.id !== lit ? "dim" : ""}`}
            style={holder ? { background: holder.colour } : undefined}
            title={said}
          >
            <span className="vh">{said}</span>
          </i>
        );
      })}
    </span>
  );
}

function Agents({ agents, of, lit }: { agents: Agent[]; of: (slot: Slot) => Holder | null; lit: string | null }) {
  const { items } = useSwitches();
  const [open, setOpen] = useOpen();
  const at = agents.findIndex((one) => one.id === open);
  const columns: Column<Agent>[] = [
    {
      id: "name",
      head: "Agent",
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
      width: 110,
      cell: (one) => <Cut>{one.resourcePools.join(", ")}</Cut>,
      value: (one) => one.resourcePools.join(),
    },
    { id: "slots", head: "Slots", width: 280, small: true, sort: false, cell: (one) => <Cells agent={one} of={of} lit={lit} /> },
    {
      id: "used",
      head: "In use",
      width: 84,
      num: true,
      small: true,
      value: (one) => slotsOf(one).filter(isBusy).length,
      cell: (one) => `${slotsOf(one).filter(isBusy).length} of ${slotsOf(one).length}`,
    },
    { id: "up", head: "Here since", width: 120, cell: (one) => <Time at={one.registeredTime} />, value: (one) => one.registeredTime },
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
          onClose={() => setOpen(null)}
          onStep={(by) => agents[at + by] && setOpen(agents[at + by]!.id)}
        />
      )}
    </>
  );
}

/** Who holds slots; pointed at, its slots light up and the others fade. */
function On({ list, lit, onLight }: { list: Holder[]; lit: string | null; onLight: (id: string | null) => void }) {
  return (
    <Card title="On the slots">
      <ul className="holders">
        {list.map((one) => (
          <li
            key={one.id}
            className={one.id === lit ? "lit" : ""}
            onMouseEnter={() => onLight(one.id)}
            onMouseLeave={() => onLight(null)}
            onFocus={() => onLight(one.id)}
            onBlur={() => onLight(null)}
          >
            <i className="sw" style={{ background: one.colour }} />
            {one.experiment === null ? (
              <Cut>{one.name}</Cut>
            ) : (
              <Link className="cut" to={`/experiments/${one.experiment}/overview`} title={one.name}>
                {one.experiment} {one.name}
              </Link>
            )}
            <b>{one.slots}</b>
          </li>
        ))}
        {!list.length && <li className="ink3">Nothing holds a slot.</li>}
      </ul>
    </Card>
  );
}

function Pools({ pools }: { pools: ReturnType<typeof useCluster>["pools"] }) {
  type One = (typeof pools)[number];
  const words = (text: string, of: string) => text.replace(of, "").toLowerCase().replaceAll("_", " ");
  const columns: Column<One>[] = [
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
