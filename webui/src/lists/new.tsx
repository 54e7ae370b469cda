import { Plus } from "lucide-react";

import { LinkButton } from "../ui/button";

/** Leads to the page where an experiment is begun, in a project if one is told. */
export const NewExperiment = ({ project }: { project?: number }) => (
  <LinkButton to={`/experiments/new${project ? `?project=${project}` : ""}`} kind="primary" icon={<Plus />}>
    New experiment
  </LinkButton>
);
