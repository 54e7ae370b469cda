import { ArrowRight } from "lucide-react";
import { Fragment } from "react";
import { Link } from "react-router";

import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { digits } from "../../parts/format";
import type { Model, Version } from "./facts";

interface Step {
  name: string;
  note: string;
  to?: string;
}

/** From the experiment that it was forked from, through experiment and trial, to the version. */
export function Lineage({ model, version }: { model: Model; version: Version }) {
  const trained = version.checkpoint.training;
  const answer = useData<{ experiment: Experiment }>(trained ? `experiments/${trained.experimentId}` : null, []);
  const experiment = answer.data?.experiment;
  const steps: Step[] = [
    ...(experiment?.forkedFrom
      ? [{ name: `Experiment ${experiment.forkedFrom}`, note: "forked from it", to: `/experiments/${experiment.forkedFrom}/overview` }]
      : []),
    ...(trained
      ? [
          {
            name: `Experiment ${trained.experimentId}`,
            note: experiment?.name ?? "its configuration and code",
            to: `/experiments/${trained.experimentId}/overview`,
          },
          {
            name: `Trial ${trained.trialId}`,
            note: trained.searcherMetric === null ? "" : `${experiment?.searcherMetric ?? "metric"} ${digits(trained.searcherMetric)}`,
            to: `/experiments/${trained.experimentId}/trials/${trained.trialId}/overview`,
          },
          {
            name: "Checkpoint",
            note: version.checkpoint.uuid.slice(0, 8),
            to: `/experiments/${trained.experimentId}/checkpoints?checkpoint=${version.checkpoint.uuid}`,
          },
        ]
      : [{ name: `Checkpoint ${version.checkpoint.uuid.slice(0, 8)}`, note: "not of a trial of this cluster" }]),
    { name: `${model.name} ${version.version}`, note: version.labels?.join(", ") || version.name || "this version" },
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
            <span className="cut ink2 sm" title={step.note}>
              {step.note}
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
  const answer = useData<{ experiment: Experiment }>(from.size === 1 ? `experiments/${only}` : null, []);
  return answer.data?.experiment.searcherMetric ?? "";
}
