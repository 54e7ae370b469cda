/**
 * Actions on an experiment: a primary one, a secondary one, and the rest in a menu that says why an action is
 * unavailable.
 */

import { useQueryClient } from "@tanstack/react-query";
import {
  Archive,
  ArchiveRestore,
  ChartSpline,
  CircleStop,
  Download,
  FlaskConical,
  FolderInput,
  GitFork,
  Pause,
  Play,
  StepForward,
  SquareTerminal,
  Trash2,
  X,
} from "lucide-react";
import { useMemo, useState } from "react";
import { useNavigate } from "react-router";

import { useChange } from "../../api/data";
import { useRights } from "../../api/rights";
import type { Experiment, Trial } from "../../api/types";
import { act, useNot, type Verb } from "../../lists/acts";
import { MoveDialog } from "../../lists/move";
import { isOver, stateName, unended } from "../../parts/format";
import { Button, LinkButton } from "../../ui/button";
import { useKey } from "../../ui/keys";
import { Menu, type MenuItem, type MenuItems } from "../../ui/menu";
import { useActionsHere } from "../../ui/page";
import { failed } from "../../ui/toast";
import { Continue } from "./continue";
import { Fork } from "./fork";

type Open = "" | "fork" | "search" | "continue" | "move";

export function useActs(experiment: Experiment, trials: Trial[], cause: string | null) {
  // The menu of a list links here to open the fork dialog.
  const [open, setOpen] = useState<Open>(() => (new URLSearchParams(location.search).has("fork") ? "fork" : ""));
  const navigate = useNavigate();
  const change = useChange();
  const client = useQueryClient();
  const does = (verb: Verb) => () => void act(client, verb, experiment);
  const state = stateName(experiment.state);
  const ended = isOver(state);
  const toggleIt: Verb = state === "PAUSED" ? "activate" : "pause";
  const whyNot = useNot();
  const rights = useRights();
  // Another experiment in the same project, unless its configuration names another one.
  const uncreated = rights("create", experiment);
  const toggles = whyNot(toggleIt, experiment);
  const toggle = () => !toggles && does(toggleIt)();
  const single = trials.length === 1 && experiment.endTime && trials[0]!.checkpointCount > 0 ? trials[0] : undefined;
  const notOn = !ended ? unended(state) : trials.length !== 1 ? "needs a single trial" : single ? undefined : "needs a checkpoint";
  useKey({ p: toggle, f: () => !uncreated && setOpen("fork") });
  const board = () =>
    change
      .mutateAsync({ method: "POST", path: "tensorboards", body: { experimentIds: [experiment.id] } })
      .then(() => navigate("/tasks"), failed);

  const fork: MenuItem = { name: "Fork", icon: <GitFork />, keys: "F", not: uncreated, act: () => setOpen("fork") };
  const goOn: MenuItem = { name: "Continue trial", icon: <StepForward />, not: notOn || uncreated, act: () => setOpen("continue") };
  const items: MenuItems = [
    fork,
    goOn,
    { name: "Search from here", icon: <FlaskConical />, not: uncreated, act: () => setOpen("search") },
    {
      name: "Download code",
      icon: <Download />,
      not: experiment.unmanaged ? "runs outside of the cluster" : undefined,
      href: `/experiments/${experiment.id}/model_def`,
    },
    {
      name: "TensorBoard",
      icon: <ChartSpline />,
      not: experiment.numTrials ? rights("create_task", experiment) : "no trial has begun",
      act: () => void board(),
    },
    null,
    { name: "Move to a project", icon: <FolderInput />, not: rights("control", experiment), act: () => setOpen("move") },
    experiment.archived
      ? { name: "Unarchive", icon: <ArchiveRestore />, not: whyNot("unarchive", experiment), act: does("unarchive") }
      : { name: "Archive", icon: <Archive />, not: whyNot("archive", experiment), act: does("archive") },
    null,
    { name: "Stop after this batch", icon: <CircleStop />, not: whyNot("cancel", experiment), act: does("cancel") },
    { name: "Kill", icon: <X />, danger: true, not: whyNot("kill", experiment), act: does("kill") },
    { name: "Delete", icon: <Trash2 />, danger: true, not: whyNot("delete", experiment), act: does("delete") },
  ];
  const offered = items.filter((item): item is MenuItem => item !== null && !item.not && item.name !== "Fork");
  const named = JSON.stringify([
    experiment.id,
    experiment.state,
    experiment.archived,
    experiment.numTrials,
    trials.length,
    uncreated,
    toggles,
  ]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the actions depend on the serialized state alone
  useActionsHere(useMemo(() => [fork, ...offered], [named]));
  const first =
    state === "ERROR" && cause ? (
      <LinkButton kind="primary" to={cause} icon={<SquareTerminal />}>
        Open log at the cause
      </LinkButton>
    ) : ended ? (
      <Button kind="primary" icon={<GitFork />} keys="F" not={uncreated} onClick={() => setOpen("fork")}>
        Fork
      </Button>
    ) : (
      <Button kind="primary" icon={toggleIt === "activate" ? <Play /> : <Pause />} keys="P" not={toggles} action="toggle" onClick={toggle}>
        {toggleIt === "activate" ? "Activate" : "Pause"}
      </Button>
    );
  const beside =
    ended && state !== "ERROR" ? (
      single && (
        <Button icon={<StepForward />} not={uncreated} onClick={() => setOpen("continue")}>
          Continue
        </Button>
      )
    ) : (
      <Button icon={<GitFork />} keys="F" not={uncreated} onClick={() => setOpen("fork")}>
        Fork
      </Button>
    );
  return (
    <>
      {beside}
      {first}
      <Menu label="More actions" kind="plain" small={false} action="more" items={items} />
      {(open === "fork" || open === "search") && <Fork experiment={experiment} search={open === "search"} onClose={() => setOpen("")} />}
      {open === "continue" && single && <Continue experiment={experiment} trial={single} onClose={() => setOpen("")} />}
      {open === "move" && <MoveDialog ids={[experiment.id]} from={experiment.projectId} onClose={() => setOpen("")} />}
    </>
  );
}
