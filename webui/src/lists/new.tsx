import { Plus } from "lucide-react";

import { LinkButton } from "../ui/button";

/** Links to the page that creates an experiment, in a project if one is given. */
export const NewExperiment = ({ project }: { project?: number }) => (
  <LinkButton to={`/experiments/new${project ? `?project=${project}` : ""}`} kind="primary" icon={<Plus />}>
    New experiment
  </LinkButton>
);
