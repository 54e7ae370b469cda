/** An experiment at a glance: its figures, its trials, their charts, and the decisions of the search. */

import { lazy, Suspense, useMemo } from "react";
import { Link, useNavigate } from "react-router";

import type { Experiment, Trial } from "../../api/types";
import { fetchedPart } from "../../api/fetched";
import { Board } from "../../charts/board";
import { useChosen } from "../../charts/chosen";
import { Kinds } from "../../charts/kinds";
import { useLink } from "../../charts/link";
import { looksOf } from "../../charts/looks";
import { useCurves } from "../../charts/metric";
import { useNames } from "../../charts/names";
import { tickText } from "../../charts/export";
import type { Rule } from "../../charts/rules";
import { type Brackets, Rungs } from "../../charts/search/rungs";
import { TrialList } from "../../charts/trials";
import { isOver } from "../../parts/format";
import { Card } from "../../ui/card";
import { Empty, Loaded, Loading } from "../../ui/status";
import { ExperimentFacts, type JobSummary } from "./facts";
import { isSmaller, useListed, waysOf } from "./listed";
import { scalesOf } from "../../charts/search/scales";
import { useRungs } from "./decided";
import { lengthOf } from "./lengths";

const Hyperparameters = lazy(() => fetchedPart(() => import("./hyperparameters")).then((module) => ({ default: module.Hyperparameters })));

/** How many curves are drawn at first besides those of chosen trials, unless the user asks for more. */
const MANY = 100;

interface Shown {
  experiment: Experiment;
  trials: Trial[];
  topics: string[];
  job?: JobSummary;
}

export function Overview({ experiment, trials, topics, job }: Shown) {
  const { params } = useLink();
  const navigate = useNavigate();
  const names = useNames([experiment.id], topics);
  const { brackets, decided } = useRungs(experiment, topics);
  const stopped = useMemo(() => new Set([...decided].filter(([, decision]) => decision.ending === "stopped").map(([id]) => id)), [decided]);
  const all = useListed(experiment, trials, stopped);
  const ranked = useMemo(() => all.map((each) => each.id), [all]);
  const choice = useChosen(experiment.id, ranked);
  const smaller = isSmaller(experiment);
  const [by, together] = [params.get("cb") ?? "", params.get("gb") ?? ""];
  const scales = useMemo(() => scalesOf(experiment.config), [experiment.config]);
  const scale = scales.get(by.slice(3))?.kind === "log" ? "log" : scales.has(by.slice(3)) ? "linear" : undefined;
  const looks = useMemo(() => looksOf(all, { by, chosen: choice.chosen, smaller, scale }), [all, by, choice.chosen, smaller, scale]);
  const groups = useMemo(
    () => (together ? looksOf(all, { by: together, chosen: choice.chosen, smaller }) : null),
    [all, together, choice.chosen, smaller],
  );
  const most = Number(params.get("n")) || MANY;
  const drawn = useMemo(() => {
    const wanted = new Set([...ranked.slice(0, most), ...choice.chosen.keys()]);
    const byId = new Map(trials.map((trial) => [trial.id, trial]));
    return ranked.filter((id) => wanted.has(id)).flatMap((id) => byId.get(id) ?? []);
  }, [ranked, most, choice.chosen, trials]);
  const curves = useCurves(drawn, (trial) => (stopped.has(trial.id) ? { end: "stopped" } : {}));
  const rules = useMemo(() => rulesOf(experiment, brackets), [experiment, brackets]);
  const open = (id: number) => navigate(`/experiments/${experiment.id}/trials/${id}/overview`);
  return (
    <>
      <ExperimentFacts experiment={experiment} trials={trials} stopped={stopped} job={job} />
      <div className="with-list">
        <TrialList
          metric={experiment.searcherMetric}
          trials={all}
          total={Math.max(trials.length, experiment.config.searcher?.max_trials ?? 0)}
          choice={choice}
          looks={looks}
        />
        <Loaded answer={names} shape="chart">
          {(names) => (
            <Board
              trials={curves}
              names={names}
              searched={experiment.searcherMetric}
              smaller={smaller}
              topics={topics.slice(1)}
              looks={looks}
              hidden={choice.hidden}
              together={groups}
              rules={rules}
              ways={waysOf(all, experiment.searcherMetric)}
              none={<Nothing experiment={experiment} />}
              below={<Kinds looks={groups ?? looks} by={together || by} smaller={smaller} drawn={curves.length} all={all.length} />}
              beside={
                brackets.length > 0 && (
                  <Rungs brackets={brackets} metric={experiment.searcherMetric} looks={looks} chosen={choice.chosen} onOpen={open} />
                )
              }
            />
          )}
        </Loaded>
      </div>
    </>
  );
}

/** Where the search judges, if it counts in batches. */
function rulesOf(experiment: Experiment, brackets: Brackets): Rule[] {
  const { unit } = lengthOf(experiment.config.searcher?.max_length);
  if (unit && unit !== "batches") return [];
  const lengths = [...new Set(brackets.flatMap((rungs) => rungs.slice(0, -1).map((rung) => rung.length)))].toSorted((a, b) => a - b);
  return lengths.map((at) => ({ axis: "batches", at, label: `rung at ${tickText(at)}` }));
}

/** Shown when nothing was reported: says whether reports may still come. */
export function Nothing({ experiment }: { experiment: Experiment }) {
  const ended = isOver(experiment.state);
  return (
    <Card>
      <Empty title={ended ? "It ended before reporting any metrics" : "No metrics have been reported yet"}>
        {ended ? (
          <>
            <Link className="link" to={`/experiments/${experiment.id}/logs`}>
              The log
            </Link>{" "}
            shows what it did.
          </>
        ) : (
          "They appear here when the script first reports one."
        )}
      </Empty>
    </Card>
  );
}

export function Search({ experiment, trials, topics }: Shown) {
  const names = useNames([experiment.id], topics);
  const { decided } = useRungs(experiment, topics);
  const endings = useMemo(() => new Map([...decided].map(([id, decision]) => [id, decision.ending])), [decided]);
  return (
    <Suspense fallback={<Loading shape="chart" />}>
      <Hyperparameters experiment={experiment} trials={trials} names={names.data ?? []} endings={endings} topics={topics.slice(1)} />
    </Suspense>
  );
}
