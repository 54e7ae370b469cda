import { Plus } from "lucide-react";

import { ANYWHERE, useRights } from "../api/rights";
import { LinkButton } from "../ui/button";

/** Links to the page that creates an experiment, in a project if one is given. */
export function NewExperiment({ project }: { project?: number }) {
  const not = useRights()("create", ANYWHERE);
  return (
    <LinkButton to={`/experiments/new${project ? `?project=${project}` : ""}`} kind="primary" icon={<Plus />} not={not}>
      New experiment
    </LinkButton>
  );
}
