import { ArrowRight } from "lucide-react";
import { Fragment } from "react";
import { Link } from "react-router";

import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { digits } from "../../parts/format";
import type { Model, Version } from "./facts";

interface Step {
  name: string;
  said: string;
  to?: string;
}

/** From the experiment that it was forked from, through experiment and trial, to the version. */
export function Lineage({ model, one }: { model: Model; one: Version }) {
  const trained = one.checkpoint.training;
  const found = useData<{ experiment: Experiment }>(trained ? `experiments/${trained.experimentId}` : null, []);
  const experiment = found.data?.experiment;
  const steps: Step[] = [
    ...(experiment?.forkedFrom
      ? [{ name: `Experiment ${experiment.forkedFrom}`, said: "forked from it", to: `/experiments/${experiment.forkedFrom}/overview` }]
      : []),
    ...(trained
      ? [
          {
            name: `Experiment ${trained.experimentId}`,
            said: experiment?.name ?? "its configuration and code",
            to: `/experiments/${trained.experimentId}/overview`,
          },
          {
            name: `Trial ${trained.trialId}`,
            said: trained.searcherMetric === null ? "" : `${experiment?.searcherMetric ?? "metric"} ${digits(trained.searcherMetric)}`,
            to: `/experiments/${trained.experimentId}/trials/${trained.trialId}/overview`,
          },
          {
            name: "Checkpoint",
            said: one.checkpoint.uuid.slice(0, 8),
            to: `/experiments/${trained.experimentId}/checkpoints?checkpoint=${one.checkpoint.uuid}`,
          },
        ]
      : [{ name: `Checkpoint ${one.checkpoint.uuid.slice(0, 8)}`, said: "not of a trial of this cluster" }]),
    { name: `${model.name} ${one.version}`, said: one.labels?.join(", ") || one.name || "this version" },
  ];
  return (
    <ol className="lineage">
      {steps.map((step, at) => (
        <Fragment key={step.name}>
          {at > 0 && (
            <li aria-hidden="true" className="arrow">
              <ArrowRight className="s" />
            </li>
          )}
          <li className={at === steps.length - 1 ? "here" : ""}>
            {step.to ? (
              <Link className="b cut" to={step.to}>
                {step.name}
              </Link>
            ) : (
              <b className="cut" title={step.name}>
                {step.name}
              </b>
            )}
            <span className="cut ink2 sm" title={step.said}>
              {step.said}
            </span>
          </li>
        </Fragment>
      ))}
    </ol>
  );
}

/** Name of the metric that the versions are compared by; empty if they come from several experiments. */
export function useMetric(versions: Version[]): string {
  const from = new Set(versions.flatMap(({ checkpoint: { training } }) => training?.experimentId ?? []));
  const [only] = from;
  const found = useData<{ experiment: Experiment }>(from.size === 1 ? `experiments/${only}` : null, []);
  return found.data?.experiment.searcherMetric ?? "";
}
