/** The bar that floats at the bottom while rows are selected; each action says to how many of them it applies. */

import { useQueryClient } from "@tanstack/react-query";
import { Archive, CircleStop, Ellipsis, FolderInput, GitCompareArrows, Pause, Play, Trash2, X } from "lucide-react";
import { type ReactNode, useState } from "react";

import { send } from "../api/client";
import { useRights } from "../api/rights";
import type { Experiment } from "../api/types";
import { Button, IconButton } from "../ui/button";
import { ask } from "../ui/dialog";
import { Menu } from "../ui/menu";
import { failed, toast } from "../ui/toast";
import { BACK, DONE, useNot, type Verb } from "./acts";
import { MoveDialog } from "./move";

const LOST: Partial<Record<Verb, string>> = {
  cancel: "Their trials save a checkpoint and stop. Everything reported so far is kept.",
  kill: "Their trials stop immediately. Work since their last checkpoint is lost.",
  delete: "Their checkpoints, metrics and logs are permanently deleted.",
};
const NAMES: Record<Verb, string> = {
  pause: "Pause",
  activate: "Activate",
  cancel: "Stop",
  kill: "Kill",
  archive: "Archive",
  unarchive: "Unarchive",
  delete: "Delete",
};
const TOLD = 3;
const LISTED = 50;

type Result = { results: { id: number; error: string }[] };

export function Selection({
  chosen,
  onNone,
  onCompare,
  onShow,
}: {
  chosen: Experiment[];
  onNone: () => void;
  onCompare: () => void;
  /** Limits the list to these rows. */
  onShow: (query: string) => void;
}) {
  const client = useQueryClient();
  const [moving, setMoving] = useState(false);
  const [busy, setBusy] = useState(false);
  const whyNot = useNot();
  const rights = useRights();
  const fitting = (verb: Verb) => chosen.filter((experiment) => !whyNot(verb, experiment));
  /** Why none of them can be: the reason that all share, or that there are several. */
  const none = (reasons: string[]) => (new Set(reasons).size === 1 ? reasons[0]! : "none of them can be");
  const notAny = (verb: Verb) => {
    const reasons = chosen.map((experiment) => whyNot(verb, experiment));
    return reasons.every(Boolean) ? none(reasons) : "";
  };
  const unmovable = chosen.map((experiment) => rights("control", experiment));
  const send_ = (verb: Verb, experimentIds: number[]) =>
    send<Result>(verb === "delete" ? "DELETE" : "POST", `experiments/${verb}`, { experimentIds }).finally(
      () => void client.invalidateQueries(),
    );
  const go = async (verb: Verb) => {
    const ids = chosen.map((experiment) => experiment.id);
    const many = ids.length === 1 ? `experiment ${ids[0]}` : `${ids.length} experiments`;
    const lost = LOST[verb];
    if (lost && !(await ask({ title: `${NAMES[verb]} ${many}?`, text: lost, verb: NAMES[verb], danger: true }))) return;
    setBusy(true);
    try {
      const { results } = await send_(verb, ids);
      tell(verb, results);
    } catch (error) {
      failed(error);
    }
    setBusy(false);
  };
  const tell = (verb: Verb, results: Result["results"]) => {
    const refused = results.filter((result) => result.error);
    const done = results.filter((result) => !result.error).map((result) => result.id);
    const back = BACK[verb];
    const more = refused.length > TOLD ? [`${refused.length - TOLD} more`] : [];
    toast({
      kind: refused.length ? "error" : "done",
      text: (
        <>
          {DONE[verb]} {done.length} of {results.length}.
          {refused.length > 0 && (
            <ul>
              {[...refused.slice(0, TOLD).map((result) => `${result.id}: ${result.error}`), ...more].map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          )}
        </>
      ),
      undo: back && done.length ? () => send_(back, done) : undefined,
      action: refused.length
        ? {
            name: "Show them",
            act: () =>
              onShow(
                refused
                  .slice(0, LISTED)
                  .map((result) => `id:${result.id}`)
                  .join(" OR "),
              ),
          }
        : undefined,
    });
    if (!refused.length) onNone();
  };
  if (!chosen.length) return null;
  const button = (verb: Verb, icon: ReactNode) => {
    const fits = fitting(verb).length;
    return (
      <Button key={verb} small icon={icon} disabled={busy} not={notAny(verb)} onClick={() => void go(verb)}>
        {fits === chosen.length || !fits ? NAMES[verb] : `${NAMES[verb]} ${fits} of ${chosen.length}`}
      </Button>
    );
  };
  const resumes = fitting("activate").length > 0 && fitting("pause").length === 0;
  return (
    <>
      <div className="bulk" role="group" aria-label="Selected experiments">
        <span role="status">{chosen.length.toLocaleString("en")} chosen</span>
        <hr />
        <Button small icon={<GitCompareArrows />} keys="C" onClick={onCompare}>
          Compare
        </Button>
        {resumes ? button("activate", <Play />) : button("pause", <Pause />)}
        {button("archive", <Archive />)}
        <Button small icon={<FolderInput />} not={unmovable.every(Boolean) ? none(unmovable) : ""} onClick={() => setMoving(true)}>
          Move
        </Button>
        {button("kill", <X />)}
        <Menu
          label="More"
          icon={<Ellipsis />}
          items={[
            { name: "Activate", icon: <Play />, not: notAny("activate"), act: () => void go("activate") },
            {
              name: "Stop after this batch",
              icon: <CircleStop />,
              not: notAny("cancel"),
              act: () => void go("cancel"),
            },
            {
              name: "Unarchive",
              icon: <Archive />,
              not: notAny("unarchive"),
              act: () => void go("unarchive"),
            },
            null,
            {
              name: "Delete",
              icon: <Trash2 />,
              danger: true,
              not: notAny("delete"),
              act: () => void go("delete"),
            },
          ]}
        />
        <hr />
        <IconButton icon={<X />} label="Clear selection" onClick={onNone} />
      </div>
      {moving && <MoveDialog ids={chosen.map((experiment) => experiment.id)} onClose={() => setMoving(false)} />}
    </>
  );
}
