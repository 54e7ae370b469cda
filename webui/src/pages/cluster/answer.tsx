import type { Agent } from "../../api/types";
import { little, many } from "../../parts/format";
import { Figure, Figures } from "../../ui/figures";
import { Meter } from "../../ui/meter";
import { isBusy, loadOf, type Pool, slotsOf, type Use } from "./facts";

/** What is free, working, waiting and broken. */
export function Answer({ agents, pools, away, uses }: { agents: Agent[]; pools: Pool[]; away: number; uses: Use[] }) {
  const slots = agents.flatMap(slotsOf);
  const busy = slots.filter(isBusy).length;
  const draining = slots.filter((slot) => slot.draining).length;
  const off = slots.filter((slot) => !slot.enabled && !slot.draining).length;
  const waiting = pools.reduce((sum, pool) => sum + pool.stats.queuedCount, 0);
  const running = pools.reduce((sum, pool) => sum + pool.stats.scheduledCount, 0);
  const share = (part: number) => (slots.length ? part / slots.length : 0);
  const whole = agents.filter((agent) => agent.enabled && slotsOf(agent).every((slot) => slot.enabled && !isBusy(slot))).length;
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
      {atWork(agents, uses)}
      <Figure
        name="Entirely free"
        value={whole}
        unit={whole === 1 ? "agent" : "agents"}
        note={`${many(slots.length - busy - draining - off, "free slot")} in all`}
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

/** Utilization of the slots in use; nothing if workers do not sample it. */
function atWork(agents: Agent[], uses: Use[]) {
  const loads = agents.map((agent) => ({ id: agent.id, ...loadOf(uses, agent.id) }));
  const gpus = loads.filter((load) => load.gpu !== null);
  if (gpus.length) {
    const mean = gpus.reduce((sum, gpu) => sum + gpu.gpu!, 0) / gpus.length;
    const least = gpus.toSorted((a, b) => a.gpu! - b.gpu!)[0]!;
    return (
      <Figure
        name="GPU busy"
        value={`${Math.round(mean)} %`}
        unit="mean of used slots"
        note={gpus.length > 1 ? `${least.id} least: ${Math.round(least.gpu!)} %` : undefined}
      />
    );
  }
  const cores = loads.filter((load) => load.cpuCores !== null);
  if (!cores.length) return null;
  const all = cores.reduce((sum, core) => sum + core.cpuCores!, 0);
  const memory = cores.reduce((sum, core) => sum + (core.memoryGb ?? 0), 0);
  return <Figure name="CPU busy" value={little(all)} unit={all === 1 ? "core" : "cores"} note={`${little(memory)} GB of memory held`} />;
}
