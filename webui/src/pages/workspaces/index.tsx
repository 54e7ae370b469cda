import { FolderTree, Pin, PinOff, Plus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";

import { useData } from "../../api/data";
import { useRights } from "../../api/rights";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { Avatar, Cut, Tag } from "../../ui/text";
import { useAct } from "../settings/change";
import { Edit, type Kept, useManage } from "./manage";
import { ProjectNotes } from "./notes";
import { WorkspaceRoles } from "./roles";

interface Workspace extends Kept {
  pinned: boolean;
  username: string;
  userId: number | null;
  numProjects: number;
  numExperiments: number;
}
export interface Project extends Kept {
  description: string;
  username: string;
  userId: number | null;
  workspaceId: number;
  notes: { name: string; contents: string }[];
  numExperiments: number;
  numActiveExperiments: number;
}

const TOPICS = ["workspaces"];
const archived = (place: Kept) => (place.archived ? <Tag>archived</Tag> : null);
const owner = <T extends { username: string }>(): Column<T> => ({
  id: "owner",
  head: "Owner",
  width: 70,
  cell: (place) => <Avatar name={place.username || "?"} small />,
  value: (place) => place.username,
});

export function Workspaces() {
  usePlace({ crumbs: [{ name: "Workspaces" }] });
  const answer = useData<{ workspaces: Workspace[] }>("workspaces", [...TOPICS, "experiments"]);
  const act = useAct();
  const [making, setMaking] = useState(false);
  const rights = useRights();
  const notControl = (workspace: Workspace) => rights("control_workspace", { ...workspace, workspaceId: workspace.id });
  const { items, editing, stop } = useManage<Workspace>({
    pathOf: (workspace) => `workspaces/${workspace.id}`,
    held: (workspace) => workspace.numExperiments,
    notEdit: notControl,
    notControl,
  });
  const pin = (workspace: Workspace) =>
    void act(
      "POST",
      `workspaces/${workspace.id}/${workspace.pinned ? "unpin" : "pin"}`,
      {},
      `${workspace.pinned ? "Unpinned" : "Pinned"} ${workspace.name}`,
    );
  return (
    <>
      <PageHead
        title="Workspaces"
        beside={answer.data && String(answer.data.workspaces.length)}
        actions={
          <Button kind="primary" icon={<Plus />} not={rights("create_workspace")} onClick={() => setMaking(true)}>
            New workspace
          </Button>
        }
      />
      <Loaded answer={answer}>
        {({ workspaces }) => (
          <Table
            name="Workspaces"
            rows={workspaces}
            id={(workspace) => workspace.id}
            called={(workspace) => workspace.name}
            columns={[
              {
                id: "name",
                head: "Workspace",
                name: true,
                value: (workspace) => workspace.name,
                cell: (workspace) => (
                  <Link className="cut" to={`/workspaces/${workspace.id}`} title={workspace.name}>
                    {workspace.name} {archived(workspace)}
                  </Link>
                ),
              },
              {
                id: "projects",
                head: "Projects",
                width: 90,
                num: true,
                cell: (workspace) => workspace.numProjects,
                value: (workspace) => workspace.numProjects,
              },
              {
                id: "experiments",
                head: "Experiments",
                width: 110,
                num: true,
                small: true,
                cell: (workspace) => workspace.numExperiments,
                value: (workspace) => workspace.numExperiments,
              },
              owner(),
            ]}
            actions={(workspace) => [
              { name: workspace.pinned ? "Unpin" : "Pin", icon: workspace.pinned ? <PinOff /> : <Pin />, act: () => pin(workspace) },
              null,
              ...items(workspace),
            ]}
          />
        )}
      </Loaded>
      {making && <NewOne noun="workspace" path="workspaces" onClose={() => setMaking(false)} />}
      {editing && <Edit record={editing} path={`workspaces/${editing.id}`} onClose={stop} />}
    </>
  );
}

export function WorkspacePage() {
  const id = Number(useParams().id);
  const space = useData<{ workspace: Workspace }>(`workspaces/${id}`, TOPICS);
  const name = space.data?.workspace.name;
  usePlace({ crumbs: [{ name: "Workspaces", to: "/workspaces" }, { name: name ?? String(id) }] });
  const answer = useData<{ projects: Project[] }>(`workspaces/${id}/projects`, [...TOPICS, "experiments"]);
  const [making, setMaking] = useState(false);
  const rights = useRights();
  return (
    <Loaded answer={space} shape="page">
      {({ workspace }) => (
        <>
          <PageHead
            title={workspace.name}
            beside={workspace.archived ? "archived" : undefined}
            actions={
              <Button kind="primary" icon={<Plus />} not={rights("create_project", { workspaceId: id })} onClick={() => setMaking(true)}>
                New project
              </Button>
            }
          />
          <Loaded answer={answer}>{({ projects }) => <Projects projects={projects} />}</Loaded>
          <WorkspaceRoles id={id} />
          {making && <NewOne noun="project" path={`workspaces/${id}/projects`} onClose={() => setMaking(false)} />}
        </>
      )}
    </Loaded>
  );
}

function Projects({ projects }: { projects: Project[] }) {
  const rights = useRights();
  const { items, editing, stop } = useManage<Project>({
    pathOf: (project) => `projects/${project.id}`,
    held: (project) => project.numExperiments,
    // The form holds the name, too.
    notEdit: (project) => rights("control_project", project) || rights("edit_project", project),
    notControl: (project) => rights("control_project", project),
  });
  const navigate = useNavigate();
  const [noting, setNoting] = useState<number | null>(null);
  const open = projects.find((project) => project.id === noting);
  if (!projects.length)
    return (
      <Card>
        <Empty icon={<FolderTree className="l" />} title="No projects yet" command="det project create WORKSPACE NAME">
          Projects group experiments.
        </Empty>
      </Card>
    );
  return (
    <Card title="Projects" count={projects.length} flush>
      <Table
        name="Projects"
        rows={projects}
        id={(project) => project.id}
        called={(project) => project.name}
        columns={[
          {
            id: "name",
            head: "Project",
            name: true,
            value: (project) => project.name,
            cell: (project) => (
              <Link className="cut" to={`/projects/${project.id}/experiments`} title={project.name}>
                {project.name} {archived(project)}
              </Link>
            ),
          },
          { id: "description", head: "Description", width: 300, cell: (project) => <Cut>{project.description}</Cut> },
          {
            id: "experiments",
            head: "Experiments",
            width: 110,
            num: true,
            small: true,
            cell: (project) => project.numExperiments,
            value: (project) => project.numExperiments,
          },
          {
            id: "active",
            head: "Active",
            width: 80,
            num: true,
            cell: (project) => project.numActiveExperiments,
            value: (project) => project.numActiveExperiments,
          },
          {
            id: "notes",
            head: "Notes",
            width: 70,
            num: true,
            cell: (project) => project.notes.length,
            value: (project) => project.notes.length,
          },
          owner(),
        ]}
        actions={(project) => [
          { name: "Open", act: () => navigate(`/projects/${project.id}/experiments`) },
          { name: "Notes", act: () => setNoting(project.id) },
          null,
          ...items(project),
        ]}
      />
      {editing && <Edit record={editing} path={`projects/${editing.id}`} described={editing.description} onClose={stop} />}
      {open && <ProjectNotes project={open} onClose={() => setNoting(null)} />}
    </Card>
  );
}

function NewOne({ noun, path, onClose }: { noun: string; path: string; onClose: () => void }) {
  const act = useAct();
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = new FormData(event.currentTarget).get("name");
    if (await act("POST", path, { name }, `Created the ${noun} ${name}`)) onClose();
  };
  return (
    <Dialog title={`New ${noun}`} onClose={onClose}>
      <form onSubmit={(event) => void make(event)}>
        <TextField label="Name" name="name" required maxLength={80} />
        <DialogFoot onClose={onClose}>Make {noun}</DialogFoot>
      </form>
    </Dialog>
  );
}
