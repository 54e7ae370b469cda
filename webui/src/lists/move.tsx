/** Moves experiments to another project. */

import { useQueryClient } from "@tanstack/react-query";
import { Folder } from "lucide-react";
import { useState } from "react";

import { send } from "../api/client";
import { useData } from "../api/data";
import { useRights } from "../api/rights";
import { Dialog } from "../ui/dialog";
import { Search } from "../ui/field";
import { failed, toast } from "../ui/toast";
import { many } from "../parts/format";

interface Project {
  id: number;
  name: string;
  archived: boolean;
}

/** Offers the projects of all workspaces in which the user may create experiments. */
export function MoveDialog({ ids, from, onClose }: { ids: number[]; from?: number; onClose: () => void }) {
  const [wanted, setWanted] = useState("");
  const spaces = useData<{ workspaces: { id: number; name: string; archived: boolean }[] }>("workspaces", ["workspaces"]);
  const client = useQueryClient();
  const put = (destinationProjectId: number) =>
    send<{ results: { id: number; error: string }[] }>("POST", "experiments/move", { experimentIds: ids, destinationProjectId }).finally(
      () => void client.invalidateQueries(),
    );
  const move = async (project: number, name: string) => {
    onClose();
    try {
      const refused = (await put(project)).results.filter((result) => result.error);
      const many = ids.length - refused.length;
      toast({
        kind: refused.length ? "error" : "done",
        text: `Moved ${many} of ${ids.length} to ${name}${refused.map((result) => `. ${result.id}: ${result.error}`).join("")}`,
        undo: from && many ? () => put(from) : undefined,
      });
    } catch (error) {
      failed(error);
    }
  };
  return (
    <Dialog title={ids.length === 1 ? `Move experiment ${ids[0]}` : `Move ${many(ids.length, "experiment")}`} onClose={onClose}>
      <Search label="Find a project" value={wanted} onChange={setWanted} />
      <div style={{ maxHeight: "50vh", overflow: "auto" }}>
        {spaces.data?.workspaces
          .filter((workspace) => !workspace.archived)
          .map((workspace) => (
            <Projects key={workspace.id} id={workspace.id} name={workspace.name} wanted={wanted} onMove={move} />
          ))}
      </div>
    </Dialog>
  );
}

function Projects({
  id,
  name,
  wanted,
  onMove,
}: {
  id: number;
  name: string;
  wanted: string;
  onMove: (project: number, name: string) => void;
}) {
  const rights = useRights();
  const answer = useData<{ projects: Project[] }>(`workspaces/${id}/projects`, ["workspaces"]);
  return (
    <>
      {answer.data?.projects
        .filter(
          (project) =>
            !project.archived &&
            !rights("create", { workspaceId: id }) &&
            `${name} / ${project.name}`.toLowerCase().includes(wanted.toLowerCase()),
        )
        .map((project) => (
          <button key={project.id} type="button" className="mi" onClick={() => onMove(project.id, project.name)}>
            <Folder />
            <span className="cut">
              {name} / {project.name}
            </span>
          </button>
        ))}
    </>
  );
}
