import { useState } from "react";

import { useChange, useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select } from "../../ui/field";
import { Failure, Loaded } from "../../ui/status";
import { toast } from "../../ui/toast";

interface Workspace {
  id: number;
  name: string;
}
interface Project extends Workspace {
  workspaceId: number;
}

/** Moves an experiment to another project. */
export function MoveTo({ one, onClose }: { one: Experiment; onClose: () => void }) {
  const spaces = useData<{ workspaces: Workspace[] }>("workspaces");
  const [space, setSpace] = useState("");
  const chosen = space || String(spaces.data?.workspaces[0]?.id ?? "");
  const projects = useData<{ projects: Project[] }>(chosen ? `workspaces/${chosen}/projects` : null);
  const [project, setProject] = useState("");
  const target = project || String(projects.data?.projects[0]?.id ?? "");
  const move = useChange(() => {
    toast({ text: `Moved ${one.name}` });
    onClose();
  });
  return (
    <Dialog
      title={`Move ${one.name} to a project`}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            not={target ? undefined : "This workspace has no projects"}
            disabled={move.isPending}
            onClick={() =>
              move.mutate({ method: "POST", path: `experiments/${one.id}/move`, body: { destinationProjectId: Number(target) } })
            }
          >
            Move
          </Button>
        </>
      }
    >
      <Loaded found={spaces}>
        {({ workspaces }) => (
          <div className="form">
            <Select
              above
              label="Workspace"
              value={chosen}
              options={workspaces.map((each) => [String(each.id), each.name] as const)}
              onChange={(id) => {
                setSpace(id);
                setProject("");
              }}
            />
            <Select
              above
              label="Project"
              value={target}
              options={(projects.data?.projects ?? []).map((each) => [String(each.id), each.name] as const)}
              onChange={setProject}
            />
          </div>
        )}
      </Loaded>
      {move.error ? <Failure error={move.error} /> : null}
    </Dialog>
  );
}
