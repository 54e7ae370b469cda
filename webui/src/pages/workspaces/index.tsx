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
const archived = (one: Kept) => (one.archived ? <Tag>archived</Tag> : null);
const owner = <T extends { username: string }>(): Column<T> => ({
  id: "owner",
  head: "Owner",
  width: 70,
  cell: (one) => <Avatar name={one.username || "?"} small />,
  value: (one) => one.username,
});

export function Workspaces() {
  usePlace({ crumbs: [{ name: "Workspaces" }] });
  const found = useData<{ workspaces: Workspace[] }>("workspaces", [...TOPICS, "experiments"]);
  const act = useAct();
  const [making, setMaking] = useState(false);
  const rights = useRights();
  const notControl = (one: Workspace) => rights("control_workspace", { ...one, workspaceId: one.id });
  const { items, editing, stop } = useManage<Workspace>({
    pathOf: (one) => `workspaces/${one.id}`,
    held: (one) => one.numExperiments,
    notEdit: notControl,
    notControl,
  });
  const pin = (one: Workspace) =>
    void act("POST", `workspaces/${one.id}/${one.pinned ? "unpin" : "pin"}`, {}, `${one.pinned ? "Unpinned" : "Pinned"} ${one.name}`);
  return (
    <>
      <PageHead
        title="Workspaces"
        beside={found.data && String(found.data.workspaces.length)}
        actions={
          <Button kind="primary" icon={<Plus />} not={rights("create_workspace")} onClick={() => setMaking(true)}>
            New workspace
          </Button>
        }
      />
      <Loaded found={found}>
        {({ workspaces }) => (
          <Table
            name="Workspaces"
            rows={workspaces}
            id={(one) => one.id}
            called={(one) => one.name}
            columns={[
              {
                id: "name",
                head: "Workspace",
                name: true,
                value: (one) => one.name,
                cell: (one) => (
                  <Link className="cut" to={`/workspaces/${one.id}`} title={one.name}>
                    {one.name} {archived(one)}
                  </Link>
                ),
              },
              { id: "projects", head: "Projects", width: 90, num: true, cell: (one) => one.numProjects, value: (one) => one.numProjects },
              {
                id: "experiments",
                head: "Experiments",
                width: 110,
                num: true,
                small: true,
                cell: (one) => one.numExperiments,
                value: (one) => one.numExperiments,
              },
              owner(),
            ]}
            actions={(one) => [
              { name: one.pinned ? "Unpin" : "Pin", icon: one.pinned ? <PinOff /> : <Pin />, act: () => pin(one) },
              null,
              ...items(one),
            ]}
          />
        )}
      </Loaded>
      {making && <NewOne noun="workspace" path="workspaces" onClose={() => setMaking(false)} />}
      {editing && <Edit one={editing} path={`workspaces/${editing.id}`} onClose={stop} />}
    </>
  );
}

export function WorkspacePage() {
  const id = Number(useParams().id);
  const space = useData<{ workspace: Workspace }>(`workspaces/${id}`, TOPICS);
  const name = space.data?.workspace.name;
  usePlace({ crumbs: [{ name: "Workspaces", to: "/workspaces" }, { name: name ?? String(id) }] });
  const found = useData<{ projects: Project[] }>(`workspaces/${id}/projects`, [...TOPICS, "experiments"]);
  const [making, setMaking] = useState(false);
  const rights = useRights();
  return (
    <Loaded found={space} shape="page">
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
          <Loaded found={found}>{({ projects }) => <Projects projects={projects} />}</Loaded>
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
    pathOf: (one) => `projects/${one.id}`,
    held: (one) => one.numExperiments,
    // The form holds the name, too.
    notEdit: (one) => rights("control_project", one) || rights("edit_project", one),
    notControl: (one) => rights("control_project", one),
  });
  const navigate = useNavigate();
  const [noting, setNoting] = useState<number | null>(null);
  const open = projects.find((one) => one.id === noting);
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
        id={(one) => one.id}
        called={(one) => one.name}
        columns={[
          {
            id: "name",
            head: "Project",
            name: true,
            value: (one) => one.name,
            cell: (one) => (
              <Link className="cut" to={`/projects/${one.id}/experiments`} title={one.name}>
                {one.name} {archived(one)}
              </Link>
            ),
          },
          { id: "description", head: "Description", width: 300, cell: (one) => <Cut>{one.description}</Cut> },
          {
            id: "experiments",
            head: "Experiments",
            width: 110,
            num: true,
            small: true,
            cell: (one) => one.numExperiments,
            value: (one) => one.numExperiments,
          },
          {
            id: "active",
            head: "Active",
            width: 80,
            num: true,
            cell: (one) => one.numActiveExperiments,
            value: (one) => one.numActiveExperiments,
          },
          { id: "notes", head: "Notes", width: 70, num: true, cell: (one) => one.notes.length, value: (one) => one.notes.length },
          owner(),
        ]}
        actions={(one) => [
          { name: "Open", act: () => navigate(`/projects/${one.id}/experiments`) },
          { name: "Notes", act: () => setNoting(one.id) },
          null,
          ...items(one),
        ]}
      />
      {editing && <Edit one={editing} path={`projects/${editing.id}`} described={editing.description} onClose={stop} />}
      {open && <ProjectNotes one={open} onClose={() => setNoting(null)} />}
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
