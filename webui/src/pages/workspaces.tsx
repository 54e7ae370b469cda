import { type FormEvent, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";

import { useChange, useData } from "../api/data";
import { type Asked, Card, Confirm, Empty, Failure, Loaded } from "../parts/basics";
import { Markdown } from "../parts/markdown";
import { Popup } from "../parts/popup";
import { Rows } from "../parts/rows";
import { WorkspaceRoles } from "./rights";

interface Workspace {
  id: number;
  name: string;
  archived: boolean;
  immutable: boolean;
  pinned: boolean;
  username: string;
  numProjects: number;
  numExperiments: number;
}
interface Project {
  id: number;
  name: string;
  description: string;
  archived: boolean;
  immutable: boolean;
  username: string;
  notes: { name: string; contents: string }[];
  numExperiments: number;
  numActiveExperiments: number;
}

const TOPICS = ["workspaces"];

export function Workspaces() {
  const found = useData<{ workspaces: Workspace[] }>("workspaces", [...TOPICS, "experiments"]);
  const change = useChange();
  const verb = (one: Workspace, name: string) => change.mutate({ method: "POST", path: `workspaces/${one.id}/${name}` });
  return (
    <>
      <h1>Workspaces</h1>
      <NewOne noun="workspace" onMake={(name) => change.mutate({ method: "POST", path: "workspaces", body: { name } })} />
      {change.error ? <Failure error={change.error} /> : null}
      <Card>
        <Loaded found={found}>
          {({ workspaces }) => (
            <Rows
              name="Workspaces"
              rows={workspaces}
              id={(one) => one.id}
              columns={[
                {
                  head: "Workspace",
                  cell: (one) => (
                    <>
                      <Link to={`/workspaces/${one.id}`}>{one.name}</Link> {one.archived && <span className="label">archived</span>}
                    </>
                  ),
                },
                { head: "Projects", num: true, cell: (one) => one.numProjects },
                { head: "Experiments", num: true, cell: (one) => one.numExperiments },
                { head: "Owner", cell: (one) => one.username },
              ]}
              actions={(one) => (
                <>
                  <button type="button" onClick={() => verb(one, one.pinned ? "unpin" : "pin")}>
                    {one.pinned ? "Unpin" : "Pin"}
                  </button>
                  <Manage one={one} path={`workspaces/${one.id}`} held={one.numExperiments} />
                </>
              )}
            />
          )}
        </Loaded>
      </Card>
    </>
  );
}

export function WorkspacePage() {
  const id = Number(useParams().id);
  const space = useData<{ workspace: Workspace }>(`workspaces/${id}`, TOPICS);
  const found = useData<{ projects: Project[] }>(`workspaces/${id}/projects`, [...TOPICS, "experiments"]);
  const change = useChange();
  return (
    <Loaded found={space}>
      {({ workspace }) => (
        <>
          <h1>
            <Link to="/workspaces">Workspaces</Link> / {workspace.name}
          </h1>
          <NewOne noun="project" onMake={(name) => change.mutate({ method: "POST", path: `workspaces/${id}/projects`, body: { name } })} />
          {change.error ? <Failure error={change.error} /> : null}
          <Loaded found={found}>
            {({ projects }) =>
              projects.length ? (
                projects.map((one) => <ProjectCard key={one.id} one={one} />)
              ) : (
                <Empty command={`det project create WORKSPACE NAME`}>No project yet. Projects group experiments.</Empty>
              )
            }
          </Loaded>
          <WorkspaceRoles id={id} />
        </>
      )}
    </Loaded>
  );
}

function ProjectCard({ one }: { one: Project }) {
  return (
    <section className="card">
      <header>
        <h2>
          <Link to={`/projects/${one.id}/experiments`}>{one.name}</Link> {one.archived && <span className="label">archived</span>}
        </h2>
        <span className="actions">
          <Manage one={one} path={`projects/${one.id}`} held={one.numExperiments} described={one.description} />
        </span>
      </header>
      <p>{one.description}</p>
      <p className="soft">
        {one.numExperiments} experiments, {one.numActiveExperiments} of them active · owner {one.username}
      </p>
      <Notes one={one} />
    </section>
  );
}

function Notes({ one }: { one: Project }) {
  const change = useChange();
  const put = (notes: Project["notes"]) => change.mutate({ method: "PUT", path: `projects/${one.id}/notes`, body: { notes } });
  const add = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    put([...one.notes, { name: String(form.get("name")), contents: String(form.get("contents")) }]);
    event.currentTarget.reset();
  };
  return (
    <details>
      <summary>Notes ({one.notes.length})</summary>
      {one.notes.map((note, at) => (
        <article key={at}>
          <h3>{note.name}</h3>
          <Markdown text={note.contents} />
          <button type="button" onClick={() => put(one.notes.filter((_, other) => other !== at))}>
            Remove
          </button>
        </article>
      ))}
      <form className="form" onSubmit={add}>
        <label>
          Title
          <input name="name" required />
        </label>
        <label>
          Note
          <textarea name="contents" rows={3} />
        </label>
        <button type="submit">Add note</button>
        {change.error ? <Failure error={change.error} /> : null}
      </form>
    </details>
  );
}

/** Rename, archive, delete: the same for workspaces and projects. */
function Manage({
  one,
  path,
  held,
  described,
}: {
  one: { name: string; archived: boolean; immutable: boolean };
  path: string;
  held: number;
  described?: string;
}) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChange();
  const navigate = useNavigate();
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    change.mutate({ method: "PATCH", path, body: Object.fromEntries(form) });
  };
  const remove = () =>
    setAsked({
      title: `Delete ${one.name}?`,
      text: "What is inside must be moved away first.",
      verb: "Delete",
      act: () => change.mutate({ method: "DELETE", path }, { onSuccess: () => navigate("/workspaces") }),
    });
  const why = one.immutable ? "It is there from the beginning and stays" : held ? "Experiments are in it: move them first" : "";
  return (
    <>
      <Popup name="Edit">
        <form className="form" onSubmit={save}>
          <label>
            Name
            <input name="name" defaultValue={one.name} required disabled={one.immutable} />
          </label>
          {described !== undefined && (
            <label>
              Description
              <input name="description" defaultValue={described} disabled={one.immutable} />
            </label>
          )}
          <button type="submit" disabled={one.immutable}>
            Save
          </button>
        </form>
        {change.error ? <Failure error={change.error} /> : null}
      </Popup>
      <button
        type="button"
        disabled={one.immutable}
        title={one.immutable ? why : ""}
        onClick={() => change.mutate({ method: "POST", path: `${path}/${one.archived ? "unarchive" : "archive"}` })}
      >
        {one.archived ? "Unarchive" : "Archive"}
      </button>
      <button type="button" disabled={Boolean(why)} title={why} onClick={remove}>
        Delete
      </button>
      <Confirm asked={asked} onClose={() => setAsked(null)} />
    </>
  );
}

function NewOne({ noun, onMake }: { noun: string; onMake: (name: string) => void }) {
  const make = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onMake(String(new FormData(event.currentTarget).get("name")));
    event.currentTarget.reset();
  };
  return (
    <form className="controls" onSubmit={make}>
      <label>
        new {noun} <input name="name" required />
      </label>
      <button type="submit">Make</button>
    </form>
  );
}
