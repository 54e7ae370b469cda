/**
 * The actions on an experiment, the same in every list and on its page: same labels, same toasts, with undo where
 * possible.
 */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { Archive, ArchiveRestore, CircleStop, FolderInput, GitFork, Pause, Play, Trash2, X } from "lucide-react";
import { useCallback, useState } from "react";
import { useNavigate } from "react-router";

import { send } from "../api/client";
import { ANYWHERE, useRights } from "../api/rights";
import type { Experiment } from "../api/types";
import { isOver, many, size, stateName, unended } from "../parts/format";
import { ask } from "../ui/dialog";
import type { MenuItem, MenuItems } from "../ui/menu";
import { failed, toast } from "../ui/toast";

export type Verb = "pause" | "activate" | "cancel" | "kill" | "archive" | "unarchive" | "delete";

const over = (state: string) => (isOver(state) ? "has ended" : state.startsWith("STOPPING") ? "is stopping" : "");

/** Why the state of an experiment does not permit the action; empty if it does. */
const NOT: Record<Verb, (experiment: Experiment) => string> = {
  pause: (experiment) =>
    over(stateName(experiment.state)) ||
    (experiment.unmanaged ? "runs outside of the cluster" : stateName(experiment.state) === "PAUSED" ? "is paused" : ""),
  activate: (experiment) => over(stateName(experiment.state)) || (stateName(experiment.state) === "PAUSED" ? "" : "is active"),
  cancel: (experiment) => over(stateName(experiment.state)),
  kill: (experiment) => (isOver(experiment.state) ? "has ended" : ""),
  archive: (experiment) => (isOver(experiment.state) ? (experiment.archived ? "is archived" : "") : unended(experiment.state)),
  unarchive: (experiment) => (experiment.archived ? "" : "is not archived"),
  delete: (experiment) => (isOver(experiment.state) ? "" : unended(experiment.state)),
};

/** Why this user may not do it to this experiment now: the state of the experiment first, then the user's rights. */
export function useNot(): (verb: Verb, experiment: Experiment) => string {
  const rights = useRights();
  return useCallback((verb, experiment) => NOT[verb](experiment) || rights(verb === "delete" ? "delete" : "control", experiment), [rights]);
}

export const DONE: Record<Verb, string> = {
  pause: "Paused",
  activate: "Activated",
  cancel: "Stopping",
  kill: "Killed",
  archive: "Archived",
  unarchive: "Unarchived",
  delete: "Deleting",
};

/** The action that undoes it. */
export const BACK: Partial<Record<Verb, Verb>> = { pause: "activate", activate: "pause", archive: "unarchive", unarchive: "archive" };

const BIG_BYTES = 1e9;
const BIG_TRIALS = 10;

/** States in numbers what will be lost; large deletions require typing the name. */
function question(verb: Verb, experiment: Experiment) {
  const named = `experiment ${experiment.id} “${experiment.name}”`;
  if (verb === "cancel")
    return {
      title: `Stop ${named}?`,
      text: "Its trials save a checkpoint and stop. It cannot be activated again. Everything reported so far is kept.",
      verb: "Stop",
    };
  if (verb === "kill")
    return {
      title: `Kill ${named}?`,
      text: "Its trials stop immediately. Work since their last checkpoint is lost.",
      verb: "Kill",
      danger: true,
      icon: <X />,
    };
  return {
    title: `Delete ${named}?`,
    text: (
      <>
        <b>
          {many(experiment.checkpointCount, "checkpoint")}, {size(experiment.checkpointSize)}
        </b>
        , metrics and logs of {many(experiment.numTrials, "trial")} are permanently deleted.
      </>
    ),
    verb: "Delete",
    danger: true,
    icon: <Trash2 />,
    typed: Number(experiment.checkpointSize) > BIG_BYTES || experiment.numTrials > BIG_TRIALS ? experiment.name : undefined,
  };
}

const ASKS = new Set<Verb>(["cancel", "kill", "delete"]);

/** Performs the action and reports the result. */
export async function act(client: QueryClient, verb: Verb, experiment: Experiment) {
  if (ASKS.has(verb) && !(await ask(question(verb, experiment)))) return;
  const does = (what: Verb) =>
    what === "delete" ? send("DELETE", `experiments/${experiment.id}`) : send("POST", `experiments/${experiment.id}/${what}`);
  try {
    await does(verb);
    const back = BACK[verb];
    toast({
      text: `${DONE[verb]} ${experiment.name}`,
      undo: back && (() => does(back).finally(() => void client.invalidateQueries())),
    });
  } catch (error) {
    failed(error, `${experiment.name} (${experiment.id})`);
  }
  void client.invalidateQueries();
}

/** The menu of an experiment, and the dialog that it opens. */
export function useExperimentMenu(): { items: (experiment: Experiment) => MenuItems; moving: Experiment | null; stopMoving: () => void } {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [moving, setMoving] = useState<Experiment | null>(null);
  const rights = useRights();
  const whyNot = useNot();
  const items = useCallback(
    (experiment: Experiment): MenuItems => {
      const item = (name: string, verb: Verb, rest: Partial<MenuItem>): MenuItem => ({
        name,
        not: whyNot(verb, experiment),
        act: () => void act(client, verb, experiment),
        ...rest,
      });
      const paused = stateName(experiment.state) === "PAUSED";
      return [
        paused ? item("Activate", "activate", { icon: <Play />, keys: "P" }) : item("Pause", "pause", { icon: <Pause />, keys: "P" }),
        {
          name: "Fork",
          icon: <GitFork />,
          keys: "F",
          not: rights("create", ANYWHERE),
          act: () => navigate(`/experiments/${experiment.id}/overview?fork=1`),
        },
        null,
        { name: "Move to a project", icon: <FolderInput />, not: rights("control", experiment), act: () => setMoving(experiment) },
        experiment.archived
          ? item("Unarchive", "unarchive", { icon: <ArchiveRestore /> })
          : item("Archive", "archive", { icon: <Archive /> }),
        null,
        item("Stop after this batch", "cancel", { icon: <CircleStop /> }),
        item("Kill", "kill", { icon: <X />, danger: true }),
        item("Delete", "delete", { icon: <Trash2 />, danger: true }),
      ];
    },
    [client, navigate, rights, whyNot],
  );
  return { items, moving, stopMoving: () => setMoving(null) };
}
