import { useState } from "react";

import { useChange, useData } from "../api/data";
import { type Asked, Confirm, Failure } from "../parts/basics";
import { Popup } from "../parts/popup";

interface Outcome {
  verb: string;
  done: number;
  failed: { id: number; error: string }[];
}
interface Verb {
  name: string;
  path: string;
  lost?: string;
}

const VERBS: Verb[] = [
  { name: "Activate", path: "activate" },
  { name: "Pause", path: "pause" },
  { name: "Stop", path: "cancel", lost: "Their trials save their state, then they leave. What they have reported stays." },
  { name: "Kill", path: "kill", lost: "Their trials end at once; what they have not saved is lost." },
  { name: "Archive", path: "archive" },
  { name: "Unarchive", path: "unarchive" },
  { name: "Delete", path: "delete", lost: "Their checkpoints, metrics and logs are deleted for ever." },
];

/** Acts on all that are chosen, and tells of each that refused. */
export function Bulk({ ids, onDone }: { ids: number[]; onDone: () => void }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const change = useChange();
  const act = (verb: string, method: string, path: string, body: object = {}) =>
    change.mutate(
      { method, path: `experiments/${path}`, body: { experimentIds: ids, ...body } },
      {
        onSuccess: ({ results }: { results: { id: number; error: string }[] }) => {
          const failed = results.filter((one) => one.error);
          setOutcome({ verb, done: results.length - failed.length, failed });
          if (!failed.length) onDone();
        },
      },
    );
  const begin = ({ name, path, lost }: Verb) => {
    const go = () => act(name, path === "delete" ? "DELETE" : "POST", path);
    const many = ids.length === 1 ? `experiment ${ids[0]}` : `${ids.length} experiments`;
    if (lost) setAsked({ title: `${name} ${many}?`, text: lost, verb: name, act: go });
    else go();
  };
  return (
    <>
      {ids.length > 0 && (
        <div className="bulk" role="group" aria-label="Chosen experiments">
          <strong>{ids.length} chosen</strong>
          {VERBS.map((verb) => (
            <button key={verb.name} type="button" disabled={change.isPending} onClick={() => begin(verb)}>
              {verb.name}
            </button>
          ))}
          <Popup name="Move">
            <Move onMove={(destinationProjectId) => act("Move", "POST", "move", { destinationProjectId })} />
          </Popup>
          <button type="button" onClick={onDone}>
            Choose none
          </button>
        </div>
      )}
      {outcome && (
        <div className="outcome" role="status">
          {outcome.verb}: {outcome.done} done{outcome.failed.length > 0 && `, ${outcome.failed.length} refused`}{" "}
          <button type="button" className="more" aria-label="Forget what was done" onClick={() => setOutcome(null)}>
            ✕
          </button>
          <ul className="plain bad">
            {outcome.failed.map((one) => (
              <li key={one.id}>
                {one.id}: {one.error}
              </li>
            ))}
          </ul>
        </div>
      )}
      {change.error ? <Failure error={change.error} /> : null}
      <Confirm asked={asked} onClose={() => setAsked(null)} />
    </>
  );
}

interface Project {
  id: number;
  name: string;
  archived: boolean;
}

/** All projects of all workspaces, to choose one. */
export function Move({ onMove }: { onMove: (project: number) => void }) {
  const spaces = useData<{ workspaces: { id: number; name: string; archived: boolean }[] }>("workspaces", ["workspaces"]);
  return (
    <div className="form">
      {spaces.data?.workspaces
        .filter((one) => !one.archived)
        .map((one) => (
          <Projects key={one.id} id={one.id} name={one.name} onMove={onMove} />
        ))}
    </div>
  );
}

function Projects({ id, name, onMove }: { id: number; name: string; onMove: (project: number) => void }) {
  const found = useData<{ projects: Project[] }>(`workspaces/${id}/projects`, ["workspaces"]);
  return (
    <>
      {found.data?.projects
        .filter((one) => !one.archived)
        .map((one) => (
          <button key={one.id} type="button" onClick={() => onMove(one.id)}>
            {name} / {one.name}
          </button>
        ))}
    </>
  );
}
