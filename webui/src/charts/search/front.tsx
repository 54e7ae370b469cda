/** Two metrics at once, with the trials that no other trial beats in both. */

import { useCallback, useMemo } from "react";

import type { Experiment } from "../../api/types";
import { Card } from "../../ui/card";
import { Select } from "../../ui/field";
import { Empty, Loading } from "../../ui/status";
import { useLink } from "../link";
import { isProfile, type Name } from "../names";
import { isAxis } from "../sections";
import { css } from "../theme";
import { type Axis, axisOf, placeOf } from "./axes";
import type { Frame } from "./canvas";
import { Dots } from "./dots";
import { useValues } from "./judge";
import { paretoFront } from "./pareto";
import type { Judge, Row } from "./rows";
import { many } from "../../parts/format";

interface Props {
  experiment: Experiment;
  rows: Row[];
  metric: Axis;
  smaller: boolean;
  names: Name[];
  topics: string[];
  tint: (row: Row) => string;
  onOpen: (row: Row) => void;
}

const MOST = 500;

export function Front({ experiment, rows, metric, smaller, names, topics, tint, onOpen }: Props) {
  const { params, set } = useLink();
  const choices = useMemo(
    () =>
      [...new Set(names.filter((each) => !isProfile(each.group) && !isAxis(each.name)).map((each) => `${each.group}:${each.name}`))]
        .filter((each) => each !== `validation:${experiment.searcherMetric}`)
        .slice(0, MOST),
    [names, experiment.searcherMetric],
  );
  const asked = params.get("m2") ?? choices[0] ?? "";
  const less = (params.get("o2") ?? "min") === "min";
  const [group = "", ...rest] = asked.split(":");
  const name = rest.join(":");
  const judge: Judge & { isDefault: boolean } = { group, name, smaller: less, batches: null, margin: 0, isDefault: false };
  const trials = useMemo(() => (name ? rows.map((row) => row.trial) : []), [rows, name]);
  const values = useValues(trials, judge, topics);
  const both = useMemo(() => rows.filter((row) => typeof values?.get(row.trial.id) === "number"), [rows, values]);
  const x = useMemo(() => axisOf(name, both, (row) => values?.get(row.trial.id), "linear"), [name, both, values]);
  const front = useMemo(
    () =>
      paretoFront(
        both.map((row) => [values!.get(row.trial.id)!, row.value]),
        [less, smaller],
      ).map((at) => both[at]!),
    [both, values, less, smaller],
  );
  const line = useCallback(
    ({ ctx }: Frame, at: (x: number, y: number) => [number, number]) => {
      ctx.beginPath();
      front.forEach((row, place) => ctx[place ? "lineTo" : "moveTo"](...at(placeOf(x, row) ?? 0, placeOf(metric, row) ?? 0)));
      ctx.strokeStyle = css("--accent");
      ctx.lineWidth = 1.5;
      ctx.stroke();
    },
    [front, x, metric],
  );
  return (
    <Card
      title="Two metrics"
      id="front"
      flush
      more={
        choices.length > 0 && (
          <>
            <Select
              small
              hideLabel
              label="Second metric"
              value={asked}
              options={choices.map((each) => [each, each.replace(":", " ")] as const)}
              onChange={(m2) => set({ m2 })}
            />
            <Select
              small
              hideLabel
              label="Best value of the second metric"
              value={less ? "min" : "max"}
              options={[
                ["min", "low is good"],
                ["max", "high is good"],
              ]}
              onChange={(o2) => set({ o2 })}
            />
          </>
        )
      }
    >
      <div className="drawn-in">
        {both.length ? (
          <Dots
            name={`${metric.name} over ${name}; ${many(front.length, "trial")} ${front.length === 1 ? "is" : "are"} beaten by no other in both: ${front.map((row) => row.trial.id).join(", ")}`}
            rows={both}
            x={x}
            y={metric}
            tint={tint}
            onOpen={onOpen}
            height={190}
            ground={line}
          />
        ) : !values ? (
          <Loading shape="chart" />
        ) : (
          <Empty title="There is no second metric yet">This view compares trials that report two metrics.</Empty>
        )}
      </div>
    </Card>
  );
}
