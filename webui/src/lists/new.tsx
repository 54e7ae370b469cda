import { Plus } from "lucide-react";

import { Popover } from "../ui/menu";
import { Copyable } from "../ui/text";

/** How an experiment is begun: from a folder by the command line, or as a fork of one that there is. */
export const NewExperiment = ({ project }: { project?: number }) => (
  <Popover label="New experiment" text="New experiment" icon={<Plus />} kind="primary">
    <div className="stack" style={{ gap: 8, maxWidth: 380 }}>
      <p>In the folder with your code and its configuration:</p>
      <Copyable text={`det experiment create config.yaml .${project ? ` --project_id ${project}` : ""}`} />
      <p className="ink2 sm">Or fork one from the list: its menu submits it again with another configuration.</p>
    </div>
  </Popover>
);
