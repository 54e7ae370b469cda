import { ChevronsUpDown, LogOut, PanelLeft, Plus, Search, Settings } from "lucide-react";
import { Link, useLocation } from "react-router";
import { useQueries } from "@tanstack/react-query";

import { query } from "../api/client";
import { question, useAgain, useData } from "../api/data";
import type { Pagination, Project, User } from "../api/types";
import { field, filterOf } from "../lists/query";
import { seenProjects } from "../parts/seen";
import { CLUSTER, isThere, SELF, type To, WORK } from "../places";
import { IconButton } from "../ui/button";
import { near } from "../ui/heavy";
import { Menu } from "../ui/menu";
import { Meter } from "../ui/meter";
import { Avatar } from "../ui/text";
import { useFolded } from "./look";
import { Mark } from "./mark";

const REST_MS = 4000;

interface Pool {
  slotsAvailable: number;
  slotsUsed: number;
  stats: { queuedCount: number };
}

/** Counts of what runs, waits and is in use, never totals. */
export function useCounts() {
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["cluster", "queue"], true, REST_MS);
  const filter = filterOf({ kind: "group", conjunction: "and", children: [field("state", "=", "RUNNING")] }, false);
  const running = useData<{ pagination: Pagination }>(
    `experiments-search${query({ lean: true, filter, limit: 1 })}`,
    ["experiments"],
    true,
    REST_MS,
  );
  const sum = (of: (pool: Pool) => number) => pools.data?.resourcePools.reduce((total, resourcePool) => total + of(resourcePool), 0) ?? 0;
  return {
    loaded: pools.data !== undefined,
    used: sum((pool) => pool.slotsUsed),
    slots: sum((pool) => pool.slotsAvailable),
    waiting: sum((pool) => pool.stats.queuedCount),
    running: running.data?.pagination.total ?? 0,
  };
}

function Entry({ to, count }: { to: To; count?: number }) {
  const here = isThere(to, useLocation().pathname);
  return (
    <Link className="nav" to={to.path} aria-current={here ? "page" : undefined} data-tip={to.name} data-keys={`G ${to.key.toUpperCase()}`}>
      {to.icon}
      <span>{to.name}</span>
      <Count of={count} />
    </Link>
  );
}

const Count = ({ of }: { of?: number }) => (of ? <span className="n">{of.toLocaleString("en")}</span> : null);

const COLOURS = ["--s4", "--s1", "--s5", "--s8", "--s2", "--s7"];

export function Side({ user, cluster, onSearch, onLeave }: { user: User; cluster?: string; onSearch: () => void; onLeave: () => void }) {
  const [folded, setFolded] = useFolded();
  const counts = useCounts();
  const name = user.displayName || user.username;
  return (
    <aside className="side" aria-label="Main">
      <Link className="brand" to="/dashboard">
        <Mark />
        <span>Steadfast</span>
        <span className="cl" title={cluster}>
          {cluster}
        </span>
      </Link>
      <button
        type="button"
        className="jump"
        onClick={onSearch}
        onPointerEnter={near}
        onFocus={near}
        data-tip="Search or jump to"
        data-keys="Ctrl K"
      >
        <Search />
        <span>Search or jump to</span>
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Places" style={{ display: "contents" }}>
        {WORK.map((to) => (
          <Entry key={to.path} to={to} count={to.path === "/experiments" ? counts.running : undefined} />
        ))}
        <div className="over-nav">Cluster</div>
        {CLUSTER.map((to) => (
          <Entry key={to.path} to={to} count={to.path === "/jobs" ? counts.waiting : undefined} />
        ))}
        <Pinned />
      </nav>
      <span className="fold">
        <IconButton
          icon={<PanelLeft />}
          label={folded ? "Unfold the side bar" : "Fold the side bar"}
          onClick={() => setFolded(folded ? "" : "folded")}
        />
      </span>
      <div className="foot">
        <Link className="gauge" to="/clusters">
          <span className="row">
            <span>Slots in use</span>
            {counts.loaded && (
              <span className="tn">
                <b className="m">{counts.used}</b> of {counts.slots}
              </span>
            )}
          </span>
          <Meter
            label={`${counts.used} of ${counts.slots} slots in use`}
            parts={[{ share: counts.slots ? counts.used / counts.slots : 0, colour: "var(--running)" }]}
          />
        </Link>
        {SELF.map((to) => (
          <Entry key={to.path} to={to} />
        ))}
        <Menu
          label={`Account of ${name}`}
          face={
            <>
              <span className="vh">Account of {name}</span>
              <Avatar name={name} plain />
              <span className="cut" aria-hidden="true">
                {name}
              </span>
              <ChevronsUpDown className="s" />
            </>
          }
          items={[
            { name: "Settings", icon: <Settings />, keys: "G S", to: "/settings" },
            null,
            { name: "Sign out", icon: <LogOut />, act: onLeave },
          ]}
        />
      </div>
    </aside>
  );
}

function Pinned() {
  const projects = seenProjects();
  const paths = projects.map(([id]) => `projects/${id}`);
  const answer = useQueries({
    queries: paths.map((path) => ({ ...question<{ project: Project }>(path), staleTime: REST_MS, retry: false })),
  });
  useAgain(
    ["experiments"],
    paths.map((path) => [path]),
    REST_MS,
  );
  return (
    <>
      <div className="over-nav">
        Projects
        <Link
          className="btn ghost s sq"
          to="/workspaces"
          aria-label="All workspaces and projects"
          data-tip="All workspaces and projects"
          data-keys="G W"
        >
          <Plus className="s" />
        </Link>
      </div>
      {projects.map(([id, project], at) => (
        <Link key={id} className="nav" to={`/projects/${id}/experiments`} title={project}>
          <i className="sq" style={{ background: `var(${COLOURS[at % COLOURS.length]})` }} />
          <span>{project}</span>
          <Count of={answer[at]?.data?.project.numActiveExperiments} />
        </Link>
      ))}
    </>
  );
}
