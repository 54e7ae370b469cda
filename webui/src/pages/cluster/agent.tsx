import { Link } from "react-router";

import type { Agent, Slot } from "../../api/types";
import { duration, little, many } from "../../parts/format";
import { Button } from "../../ui/button";
import { Facts } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { Time } from "../../ui/text";
import { type Holder, type Run, type Use, usePast } from "./facts";
import { useSwitches } from "./switches";

const DAY_MS = 86_400_000;

export function AgentDrawer({
  agent,
  of,
  word,
  uses,
  onClose,
  onStep,
}: {
  agent: Agent;
  uses: Use[];
  of: (slot: Slot) => Holder | null;
  word: (slot: Slot, holder: Holder | null) => string;
  onClose: () => void;
  onStep: (by: 1 | -1) => void;
}) {
  const past = usePast();
  return (
    <Drawer title={agent.id} onClose={onClose} onStep={onStep}>
      <Facts
        facts={[
          ["Pool", agent.resourcePools.join(", ")],
          ["Address", agent.addresses.join(", ")],
          ["Connected since", <Time key="t" at={agent.registeredTime} />],
          ["Version", agent.version],
          ["State", agent.draining ? "draining: running tasks finish first" : agent.enabled ? "takes work" : "disabled"],
        ]}
      />
      <ul className="slots" aria-label={`Slots of ${agent.id}`}>
        {Object.values(agent.slots).map((slot) => (
          <SlotLine key={slot.id} agent={agent} slot={slot} holder={of(slot)} word={word} runs={past.get(`${agent.id} ${slot.id}`) ?? []} />
        ))}
      </ul>
      <Processes agent={agent} uses={uses} />
      <Limits agent={agent} />
    </Drawer>
  );
}

const amount = (value: number | undefined, unit: string) => (value === undefined ? null : `${little(value)} ${unit}`);

/** What each process on the agent used when it was last sampled. */
function Processes({ agent, uses }: { agent: Agent; uses: Use[] }) {
  const processes = uses.flatMap((use) =>
    use.processes.filter((process) => process.agentId === agent.id).map((process) => ({ use, process })),
  );
  if (!processes.length) return null;
  return (
    <section aria-label={`Processes of ${agent.id}`}>
      <h3 style={{ marginTop: 14 }}>Processes</h3>
      <ul className="holders sm">
        {processes.map(({ use, process }) => (
          <li key={`${use.taskId} ${process.name}`}>
            <Link className="cut" to={`/experiments/${use.experimentId}/trials/${use.trialId}/profiler`} title={use.name}>
              {use.experimentId} {use.name}
            </Link>
            {process.name !== agent.id && <span className="ink3 nowrap">{process.name.replace("rank", "rank ")}</span>}
            <b className="nowrap">
              {[amount(process.cpuCores, "cores"), amount(process.memoryGb, "GB"), amount(process.gpuMemoryGb, "GB of GPU")]
                .filter(Boolean)
                .join(" · ")}
            </b>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What each run on the agent may use, and why a limit is missing. */
function Limits({ agent }: { agent: Agent }) {
  if (!agent.runLimits.length) return null;
  return (
    <section aria-label={`Limits of runs on ${agent.id}`}>
      <h3 style={{ marginTop: 14 }}>Limits of each run</h3>
      <Facts facts={agent.runLimits.map(({ kind, holds, text }) => [kind, holds ? text : `no limit: ${text}`])} />
    </section>
  );
}

function SlotLine({
  agent,
  slot,
  holder,
  word,
  runs,
}: {
  agent: Agent;
  slot: Slot;
  holder: Holder | null;
  word: (slot: Slot, holder: Holder | null) => string;
  runs: Run[];
}) {
  const { put, not } = useSwitches();
  const path = `agents/${agent.id}/slots/${slot.id}`;
  const named = `slot ${slot.id} of ${agent.id}`;
  return (
    <li>
      <span className="held">
        <b className="tn">{slot.id}</b>
        {holder && <i className="sw" style={{ background: holder.colour }} />}
        {holder && holder.experiment !== null ? (
          <Link className="cut" to={`/experiments/${holder.experiment}/overview`}>
            {holder.experiment} {holder.name}
          </Link>
        ) : (
          <span className="cut">{word(slot, holder)}</span>
        )}
        <span className="ink3 sm cut kind">{`${slot.device.type.replace("TYPE_", "")} ${slot.device.brand}`}</span>
        {slot.enabled ? (
          <Button
            small
            aria-label={`Drain ${named}`}
            not={not}
            onClick={() => void put(path, "disable", { drain: true }, `Slot ${slot.id} of ${agent.id} drains`)}
          >
            Drain
          </Button>
        ) : (
          <Button
            small
            aria-label={`Enable ${named}`}
            not={not}
            onClick={() => void put(path, "enable", undefined, `Enabled slot ${slot.id} of ${agent.id}`)}
          >
            Enable
          </Button>
        )}
      </span>
      <PastStrip runs={runs} />
    </li>
  );
}

/** What ran on a slot during the last day. */
function PastStrip({ runs }: { runs: Run[] }) {
  const now = Date.now();
  const place = (at: string | null) => Math.max(0, Math.min(100, 100 * (1 - (now - (at ? Date.parse(at) : now)) / DAY_MS)));
  const describe = (run: Run) =>
    `${run.name}: ${duration(((run.until ? Date.parse(run.until) : now) - Date.parse(run.since)) / 1000)}${run.outcome && `, ${run.outcome}`}`;
  return (
    <svg
      className="past"
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`The last day: ${many(runs.length, "run")}`}
    >
      {runs.map((run) => (
        <rect
          key={run.since}
          x={place(run.since)}
          width={Math.max(0.3, place(run.until) - place(run.since))}
          height={6}
          className={run.outcome && run.outcome !== "succeeded" ? "failed" : ""}
        >
          <title>{describe(run)}</title>
        </rect>
      ))}
    </svg>
  );
}
