import { useState } from "react";

import { useChange } from "../api/data";
import type { Experiment } from "../api/types";
import { MoveDialog } from "../lists/move";
import { type Asked, Confirm, Failure } from "./basics";
import { isOver, size, stateName } from "./format";

interface Action {
  name: string;
  verb: string;
  method?: string;
  /** Why it cannot be done now; empty when it can. */
  not: (state: string, one: Experiment) => string;
  /** What will be lost. */
  ask?: (one: Experiment) => string;
}

const over = (state: string) => (isOver(state) ? "it has ended" : state.startsWith("STOPPING") ? "it is stopping" : "");
const stored = (one: Experiment) =>
  `${one.checkpointCount === 1 ? "1 checkpoint" : `${one.checkpointCount} checkpoints`} (${size(one.checkpointSize)})`;

export const ACTIONS: Action[] = [
  {
    name: "Pause",
    verb: "pause",
    not: (state, one) => over(state) || (one.unmanaged ? "it runs outside of the cluster" : state === "PAUSED" ? "it is paused" : ""),
  },
  { name: "Activate", verb: "activate", not: (state) => over(state) || (state !== "PAUSED" ? "it is active" : "") },
  {
    name: "Stop",
    verb: "cancel",
    not: over,
    ask: () => "Its trials save their state, then they leave; it cannot be activated again. What they have reported stays.",
  },
  {
    name: "Kill",
    verb: "kill",
    not: (state) => (isOver(state) ? "it has ended" : ""),
    ask: () => "Its trials end at once; what they have not saved is lost.",
  },
  { name: "Archive", verb: "archive", not: (state, one) => (!isOver(state) ? "it has not ended" : one.archived ? "it is archived" : "") },
  { name: "Unarchive", verb: "unarchive", not: (_, one) => (one.archived ? "" : "it is not archived") },
  {
    name: "Delete",
    verb: "",
    method: "DELETE",
    not: (state) => (isOver(state) ? "" : "it has not ended"),
    ask: (one) =>
      `${stored(one)}, metrics and logs of ${one.numTrials === 1 ? "1 trial" : `${one.numTrials} trials`} are deleted for ever.`,
  },
];

function useActions(one: Experiment) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChange();
  const state = stateName(one.state);
  const start = (action: Action) => {
    const act = () => change.mutate({ method: action.method ?? "POST", path: `experiments/${one.id}${action.verb && `/${action.verb}`}` });
    if (action.ask)
      setAsked({ title: `${action.name} experiment ${one.id} “${one.name}”?`, text: action.ask(one), verb: action.name, act });
    else act();
  };
  const buttons = (names?: string[]) =>
    ACTIONS.filter((action) => !names || names.includes(action.name)).map((action) => {
      const not = action.not(state, one);
      return (
        <button
          key={action.name}
          type="button"
          disabled={Boolean(not) || change.isPending}
          title={not && `Not possible: ${not}`}
          onClick={() => start(action)}
        >
          {action.name}
        </button>
      );
    });
  const rest = (
    <>
      <Confirm asked={asked} onClose={() => setAsked(null)} />
      {change.error && <Failure error={change.error} />}
    </>
  );
  return { buttons, rest };
}

export function Actions({ one, names }: { one: Experiment; names?: string[] }) {
  const { buttons, rest } = useActions(one);
  return (
    <span className="actions">
      {buttons(names)}
      {rest}
    </span>
  );
}

/** Filing it under another project. */
export function MoveAction({ one }: { one: Experiment }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Move
      </button>
      {open && <MoveDialog ids={[one.id]} onClose={() => setOpen(false)} />}
    </>
  );
}
