/** The palette's results: names come from the server; places and actions are matched locally, without delay. */

import { Box, FlaskConical, FolderTree, Hash, Server } from "lucide-react";
import { type ReactNode, useDeferredValue, useMemo } from "react";

import { query } from "../api/client";
import { useData } from "../api/data";
import type { Agent, Experiment, Trial } from "../api/types";
import type { Row } from "../lists/columns";
import { field, filterOf, type Node } from "../lists/query";
import { seenProjects } from "../parts/seen";
import { useActionsNow, usePlaceNow } from "../ui/place";
import { StateIcon } from "../ui/state";
import { exactFirst } from "./exact_first";
import { ALL } from "../places";
import { many } from "../parts/format";

export interface Found {
  id: string;
  name: string;
  /** Small text beside the name. */
  more?: string;
  icon?: ReactNode;
  keys?: string;
  not?: string;
  danger?: boolean;
  to?: string;
  href?: string;
  act?: () => void;
  /** Tab shows the actions on it. */
  acts?: Experiment;
}
export interface Group {
  name: string;
  items: Found[];
}

const MOST = 6;

const has = (name: string, text: string) => name.toLowerCase().includes(text.toLowerCase());

/**
 * `#` limits the search to ids, `>` to actions; otherwise everything is searched by name.
 * Also returns whether the groups are those of what is typed, and not still of an earlier text.
 */
export function useFound(typed: string): { groups: Group[]; isCurrent: boolean } {
  const text = useDeferredValue(typed.trim());
  const acts = text.startsWith(">");
  const wanted = text.replace(/^[#>]\s*/, "");
  const id = /^\d+$/.test(wanted) ? Number(wanted) : null;
  const byName = !acts && !text.startsWith("#");
  const [experiments, awaited] = useExperiments(acts || !wanted ? null : wanted, id, byName);
  const trial = useData<{ trial: Trial }>(id !== null && !acts ? `trials/${id}` : null, []);
  const [named, isNamed] = useNamed(byName ? wanted : "");
  const here = useActionsNow();
  const { crumbs } = usePlaceNow();
  const groups = useMemo(() => {
    const places: Found[] = byName
      ? ALL.filter((to) => has(to.name, wanted)).map((to) => ({
          id: to.path,
          name: to.name,
          icon: to.icon,
          keys: `G ${to.key.toUpperCase()}`,
          to: to.path,
        }))
      : [];
    const can: Found[] = here
      .filter((menuItem) => (acts || byName) && has(menuItem.name, wanted))
      .map((menuItem) => ({ ...menuItem, id: `act ${menuItem.name}` }));
    const loaded = trial.data?.trial;
    const trials: Found[] =
      loaded && id !== null
        ? [
            {
              id: `trial ${loaded.id}`,
              name: `Trial ${loaded.id}`,
              more: `of experiment ${loaded.experimentId}`,
              icon: <Hash />,
              to: `/experiments/${loaded.experimentId}/trials/${loaded.id}/overview`,
            },
          ]
        : [];
    const all = [
      { name: "Experiments", items: experiments },
      { name: "Trials", items: trials },
      { name: `Actions on ${crumbs.at(-1)?.name ?? "this page"}`, items: can },
      ...named,
      { name: "Go to", items: places },
    ].filter((group) => group.items.length > 0);
    return exactFirst(all, wanted);
  }, [experiments, trial.data, id, here, crumbs, named, acts, byName, wanted]);
  return { groups, isCurrent: text === typed.trim() && !awaited && !trial.isLoading && isNamed };
}

const NOTHING: Found[] = [];

/** Also returns whether they are still those of an earlier text. */
function useExperiments(wanted: string | null, id: number | null, byName: boolean): [Found[], boolean] {
  const children: Node[] = [
    ...(byName && wanted ? [field("name", "contains", wanted)] : []),
    ...(id === null ? [] : [field("id", "=", String(id))]),
  ];
  const filter = filterOf({ kind: "group", conjunction: "or", children }, true);
  const path = wanted && children.length ? `experiments-search${query({ lean: true, filter, sort: "id=desc", limit: MOST })}` : null;
  const answer = useData<{ experiments: Row[] }>(path, [], true);
  const experiments = useMemo(
    () =>
      path === null
        ? NOTHING
        : (answer.data?.experiments ?? []).map(({ experiment }) => ({
            id: `experiment ${experiment.id}`,
            name: experiment.name,
            more: `${experiment.id} · ${experiment.projectName}`,
            icon: <StateIcon state={experiment.state} />,
            to: `/experiments/${experiment.id}/overview`,
            acts: experiment,
          })),
    [path, answer.data],
  );
  return [experiments, path !== null && (answer.isLoading || answer.isPlaceholderData)];
}

/** Models, workspaces and projects, agents; and whether all of them have been asked for and answered. */
function useNamed(wanted: string): [Group[], boolean] {
  const models = useData<{ models: { id: number; name: string; numVersions: number }[] }>(wanted ? "models" : null, []);
  const spaces = useData<{ workspaces: { id: number; name: string }[] }>(wanted ? "workspaces" : null, []);
  const agents = useData<{ agents: Agent[] }>(wanted ? "agents" : null, []);
  const groups = useMemo(() => {
    if (!wanted) return [];
    const fitting = <T extends { name: string }>(all: T[] | undefined, show: (record: T) => Found) =>
      (all ?? [])
        .filter((record) => has(record.name, wanted))
        .slice(0, MOST)
        .map(show);
    return [
      {
        name: "Models",
        items: fitting(models.data?.models, (model) => ({
          id: `model ${model.id}`,
          name: model.name,
          more: many(model.numVersions, "version"),
          icon: <Box />,
          to: `/models/${encodeURIComponent(model.name)}`,
        })),
      },
      {
        name: "Workspaces and projects",
        items: [
          ...fitting(
            seenProjects().map(([id, name]) => ({ id, name })),
            (project) => ({
              id: `project ${project.id}`,
              name: project.name,
              more: "project",
              icon: <FlaskConical />,
              to: `/projects/${project.id}/experiments`,
            }),
          ),
          ...fitting(spaces.data?.workspaces, (workspace) => ({
            id: `workspace ${workspace.id}`,
            name: workspace.name,
            more: "workspace",
            icon: <FolderTree />,
            to: `/workspaces/${workspace.id}`,
          })),
        ],
      },
      {
        name: "Agents",
        items: fitting(
          agents.data?.agents.map((agent) => ({ name: agent.id })),
          (agent) => ({
            id: `agent ${agent.name}`,
            name: agent.name,
            icon: <Server />,
            to: `/clusters?open=${encodeURIComponent(agent.name)}`,
          }),
        ),
      },
    ];
  }, [wanted, models.data, spaces.data, agents.data]);
  return [groups, !models.isLoading && !spaces.isLoading && !agents.isLoading];
}
