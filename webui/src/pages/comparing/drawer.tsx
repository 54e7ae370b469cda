/**
 * A few experiments or trials side by side, without leaving their list: their values, the curve, and where they differ.
 */

import { Maximize2 } from "lucide-react";
import { useMemo } from "react";
import { Link } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { differences } from "../../charts/differences";
import { Stroke } from "../../charts/foot";
import { type Looks, looksOf } from "../../charts/looks";
import { MetricChart, useCurves } from "../../charts/metric";
import { digits } from "../../parts/format";
import { LinkButton } from "../../ui/button";
import { Drawer } from "../../ui/drawer";
import { State } from "../../ui/state";
import { Empty, Failure, Loading } from "../../ui/status";
import { bestValueOf, isSmaller } from "../experiment/listed";
import { comparePage, MOST_BESIDE } from "./beside";
import { coloursOf, type Found, rankedOf, useCompared } from "./compared";
import { Details } from "./details";

const HEIGHT_PX = 220;

/** For an experiment, its best trial is shown. */
export function CompareDrawer({
  experiments = NONE,
  trials = NONE,
  onClose,
}: {
  experiments?: number[];
  trials?: number[];
  onClose: () => void;
}) {
  const compared = useCompared(experiments, trials, 1);
  const many = experiments.length || trials.length;
  const word = experiments.length ? "experiment" : "trial";
  return (
    <Drawer
      label="Compare"
      wide
      title={`Compare ${many} ${word}${many === 1 ? "" : "s"}`}
      head={
        <LinkButton small icon={<Maximize2 />} to={comparePage({ experiments, trials })}>
          Open as a page
        </LinkButton>
      }
      onClose={onClose}
    >
      {compared.errors.map((error, at) => (
        <Failure key={at} error={error} />
      ))}
      {many === 1 && <p className="ink2 sm">Choose another one in the list, up to {MOST_BESIDE}, and it appears here.</p>}
      {compared.pending ? (
        <Loading shape="chart" />
      ) : compared.trials.length ? (
        <Beside compared={compared} />
      ) : (
        <Empty title="None of these has any trials yet">They appear when the search creates them.</Empty>
      )}
    </Drawer>
  );
}
const NONE: number[] = [];

function Beside({ compared }: { compared: Found }) {
  const { experiments, trials } = compared;
  const above = useMemo(() => new Map(experiments.map((experiment) => [experiment.id, experiment])), [experiments]);
  const { metric, smaller, trials: all } = rankedOf(compared);
  const colours = coloursOf(
    compared,
    all.map((trial) => trial.id),
  );
  const key = JSON.stringify([all, [...colours]]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the result depends on the serialized content alone
  const looks = useMemo(() => looksOf(all, { by: "", chosen: colours, smaller }), [key, smaller]);
  const curves = useCurves(trials, (trial) => ({ label: `${trial.experimentId} / ${trial.id}` }));
  const rows = useMemo(() => differences(experiments, trials), [experiments, trials]);
  const names = experiments.map((experiment) => experiment.searcherMetric);
  /** The first of each metric, which says whether lower is better. */
  const searches = experiments.filter((_, at) => names.indexOf(names[at]!) === at);
  const topics = experiments.map((experiment) => `experiment.${experiment.id}.series`);
  const order = new Map(all.map((trial, at) => [trial.id, at]));
  return (
    <>
      <Values metric={metric} trials={trials.toSorted((a, b) => order.get(a.id)! - order.get(b.id)!)} above={above} looks={looks} />
      {searches.map((experiment) => (
        <MetricChart
          key={experiment.id}
          metric={experiment.searcherMetric}
          note={searches.length > 1 ? "its search's metric" : "the metric of the search"}
          trials={curves}
          looks={looks}
          topics={topics}
          smaller={isSmaller(experiment)}
          searched
          height={HEIGHT_PX}
        />
      ))}
      <Details trials={trials} rows={rows} looks={looks} />
    </>
  );
}

interface ValuesProps {
  metric: string;
  trials: Trial[];
  above: Map<number, Experiment>;
  looks: Looks;
}

/** Which trial is best, and how far behind the others are; one without the common metric shows that of its own search. */
function Values({ metric, trials, above, looks }: ValuesProps) {
  return (
    <ul className="listed" aria-label="Values, best first">
      {trials.map((trial) => {
        const experiment = above.get(trial.experimentId);
        const look = looks.get(trial.id);
        const common = bestValueOf(trial, metric);
        const name = common === null ? (experiment?.searcherMetric ?? "") : metric;
        const value = common ?? bestValueOf(trial, name);
        return (
          <li key={trial.id}>
            {look && <Stroke colour={look.colour} dash={look.dash} />}
            <Link className="m cut" to={`/experiments/${trial.experimentId}/trials/${trial.id}/overview`} title={experiment?.name}>
              {experiment?.name ?? trial.experimentId}
            </Link>
            <span className="ink3 sm nowrap">
              {trial.experimentId} / {trial.id}
            </span>
            <State state={trial.state} />
            <b>
              {value === null ? "–" : digits(value)} <span className="ink3 sm">{name}</span>
            </b>
          </li>
        );
      })}
    </ul>
  );
}
