/** What can be done with an experiment: one thing first, one beside it, the rest in a menu that says why not. */

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
import type { Experiment, Trial } from "../../api/types";
import { isOver, size, stateName } from "../../parts/format";
import { Button, LinkButton } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { useKey } from "../../ui/keys";
import { Menu, type MenuItem, type MenuItems } from "../../ui/menu";
import { useActionsHere } from "../../ui/page";
import { failed, toast } from "../../ui/toast";
import { Continue } from "./continue";
import { Fork } from "./fork";
import { MoveTo } from "./move";

type Open = "" | "fork" | "search" | "continue" | "move";

const plural = (count: number, word: string) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const MANY_TRIALS = 10;
const MUCH_BYTES = 1e9;

/** Why it cannot be paused, activated, stopped or killed now. */
function reasons(one: Experiment) {
  const state = stateName(one.state);
  const over = isOver(state) ? "has ended" : "";
  const stopping = over || (state.startsWith("STOPPING") ? "is stopping" : "");
  const outside = one.unmanaged ? "runs outside of the cluster" : "";
  const running = isOver(state) ? undefined : "still running";
  return { state, over, stopping, outside, running };
}

export function useActs(one: Experiment, trials: Trial[], cause: string | null) {
  // A list's menu leads here to fork.
  const [open, setOpen] = useState<Open>(() => (new URLSearchParams(location.search).has("fork") ? "fork" : ""));
  const navigate = useNavigate();
  const change = useChange();
  const { state, over, stopping, outside, running } = reasons(one);
  const send = (verb: string, said: string, undo?: string): Promise<void> =>
    change.mutateAsync({ method: verb ? "POST" : "DELETE", path: `experiments/${one.id}${verb && `/${verb}`}` }).then(
      () => toast({ text: `${said} ${one.name}`, undo: undo ? () => send(undo, "Took it back:") : undefined }),
      (error) => failed(error),
    );
  const toggles = stopping || outside;
  const paused = state === "PAUSED";
  const toggle = () => !toggles && void send(paused ? "activate" : "pause", paused ? "Activated" : "Paused", paused ? "pause" : "activate");
  const single = trials.length === 1 && one.endTime && trials[0]!.checkpointCount > 0 ? trials[0] : undefined;
  const whyNot = !over ? "still running" : trials.length !== 1 ? "needs a single trial" : single ? undefined : "needs a checkpoint";
  useKey({ p: toggle, f: () => setOpen("fork") });
  const kill = () =>
    ask({
      title: `Kill ${one.name}?`,
      text: "Its trials end at once; what they have not saved is lost. Stop saves their state first.",
      verb: "Kill now",
      icon: <X />,
      danger: true,
    }).then((yes) => yes && void send("kill", "Killed"));
  const stop = () =>
    ask({
      title: `Stop ${one.name}?`,
      text: "Its trials save their state, then they leave. It cannot be activated again; what they have reported stays.",
      verb: "Stop",
    }).then((yes) => yes && void send("cancel", "Stopping"));
  const much = one.numTrials > MANY_TRIALS || Number(one.checkpointSize) > MUCH_BYTES;
  const remove = () =>
    ask({
      title: `Delete ${one.name}?`,
      text: `Experiment ${one.id} goes with its ${plural(one.numTrials, "trial")}, their metrics and logs, and ${plural(one.checkpointCount, "checkpoint")}, ${size(one.checkpointSize)}.`,
      verb: "Delete experiment",
      icon: <Trash2 />,
      danger: true,
      typed: much ? one.name : undefined,
    }).then((yes) => yes && void send("", "Deleting"));
  const board = () =>
    change.mutateAsync({ method: "POST", path: "tensorboards", body: { experimentIds: [one.id] } }).then(() => navigate("/tasks"), failed);

  const fork: MenuItem = { name: "Fork", icon: <GitFork />, keys: "F", act: () => setOpen("fork") };
  const goOn: MenuItem = { name: "Continue trial", icon: <StepForward />, not: whyNot, act: () => setOpen("continue") };
  const items: MenuItems = [
    fork,
    goOn,
    { name: "Search from here", icon: <FlaskConical />, act: () => setOpen("search") },
    { name: "Download code", icon: <Download />, not: outside || undefined, href: `/experiments/${one.id}/model_def` },
    { name: "TensorBoard", icon: <ChartSpline />, not: one.numTrials ? undefined : "no trial has begun", act: () => void board() },
    null,
    { name: "Move to a project", icon: <FolderInput />, act: () => setOpen("move") },
    one.archived
      ? { name: "Unarchive", icon: <ArchiveRestore />, act: () => void send("unarchive", "Took out of the archive:", "archive") }
      : { name: "Archive", icon: <Archive />, not: running, act: () => void send("archive", "Archived", "unarchive") },
    null,
    { name: "Stop after this batch", icon: <CircleStop />, not: stopping || undefined, act: () => void stop() },
    { name: "Kill now", icon: <X />, danger: true, not: over || undefined, act: () => void kill() },
    { name: "Delete", icon: <Trash2 />, danger: true, not: running, act: () => void remove() },
  ];
  const offered = items.filter((item): item is MenuItem => item !== null && !item.not && item.name !== "Fork");
  const named = JSON.stringify([one.id, one.state, one.archived, one.numTrials, trials.length]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same as long as the same can be done
  useActionsHere(useMemo(() => [fork, ...offered], [named]));
  const ended = isOver(state);
  const first =
    state === "ERROR" && cause ? (
      <LinkButton kind="primary" to={cause} icon={<SquareTerminal />}>
        Open log at the cause
      </LinkButton>
    ) : ended ? (
      <Button kind="primary" icon={<GitFork />} keys="F" onClick={() => setOpen("fork")}>
        Fork
      </Button>
    ) : (
      <Button
        kind="primary"
        icon={paused ? <Play /> : <Pause />}
        keys="P"
        not={toggles ? `It ${toggles}` : undefined}
        action="toggle"
        onClick={toggle}
      >
        {paused ? "Activate" : "Pause"}
      </Button>
    );
  const beside =
    ended && state !== "ERROR" ? (
      single && (
        <Button icon={<StepForward />} onClick={() => setOpen("continue")}>
          Continue
        </Button>
      )
    ) : (
      <Button icon={<GitFork />} keys="F" onClick={() => setOpen("fork")}>
        Fork
      </Button>
    );
  return (
    <>
      {beside}
      {first}
      <Menu label="More actions" kind="plain" small={false} action="more" items={items} />
      {(open === "fork" || open === "search") && <Fork one={one} search={open === "search"} onClose={() => setOpen("")} />}
      {open === "continue" && single && <Continue one={one} trial={single} onClose={() => setOpen("")} />}
      {open === "move" && <MoveTo one={one} onClose={() => setOpen("")} />}
    </>
  );
}
