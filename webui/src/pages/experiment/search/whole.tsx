/** A search at a glance: which values do well, which hyperparameters matter, and when. */

import { ArrowDownWideNarrow } from "lucide-react";
import { useCallback, useMemo, useState } from "react";

import type { Trial } from "../../../api/types";
import type { Name } from "../../../charts/names";
import type { Axis, Brush } from "../../../charts/search/axes";
import { Dots } from "../../../charts/search/dots";
import { Front } from "../../../charts/search/front";
import { Parallel } from "../../../charts/search/parallel";
import type { Ending, Row } from "../../../charts/search/rows";
import { Distribution, History, Importances } from "../../../charts/search/summary";
import { Timeline } from "../../../charts/search/timeline";
import { Visible } from "../../../charts/visible";
import { Button } from "../../../ui/button";
import type { Shown } from "./axes";
import { Key, Part } from "./part";

const SLICES = 6;

export function Whole({
  experiment,
  rows,
  chosen,
  axes,
  share,
  tint,
  open,
  judge,
  controls,
  names,
  topics,
  trials,
  endings,
}: Shown & {
  controls: { axes: Axis[]; brushes: Brush[]; onBrush: (brushes: Brush[]) => void; onMove: (name: string, to: number) => void };
  names: Name[];
  topics: string[];
  trials: Trial[];
  endings: Map<number, Ending>;
  wanted?: string | null;
}) {
  const [ranked, setRanked] = useState<string[]>([]);
  const rank = useCallback((names: string[]) => setRanked((former) => (former.join() === names.join() ? former : names)), []);
  const slices = useMemo(() => {
    const place = (axis: Axis) => (ranked.includes(axis.name) ? ranked.indexOf(axis.name) : ranked.length);
    return axes.shown.toSorted((a, b) => place(a) - place(b)).slice(0, SLICES);
  }, [axes.shown, ranked]);
  const inOrder = axes.shown.map((axis) => axis.name).join() === ranked.join();
  return (
    <>
      <div className="cols wide-left">
        <Part id="parallel" title="Parallel coordinates">
          <Parallel {...controls} rows={rows} chosen={chosen} tint={share} onOpen={open} />
          <Key of="lines" metric={axes.metric} smaller={judge.smaller} />
        </Part>
        <Part
          id="importance"
          title="Importance"
          note={
            <Button
              small
              kind="ghost"
              icon={<ArrowDownWideNarrow />}
              not={inOrder ? "The axes are in this order" : undefined}
              onClick={() => axes.order(ranked)}
            >
              Order axes
            </Button>
          }
        >
          <Importances rows={chosen} axes={axes.shown} shareOf={share} onRanked={rank} />
        </Part>
      </div>
      <div className="grid3">
        {slices.map((axis) => (
          <Part key={axis.name} id={`slice ${axis.name}`} title={axis.name} note={axis.scale === "choice" ? "" : `${axis.scale} scale`}>
            <Visible name={axis.name} height={190}>
              {() => (
                <Dots
                  name={`${judge.name} over ${axis.name}`}
                  rows={chosen}
                  x={axis}
                  y={axes.metric}
                  tint={tint}
                  onOpen={open}
                  height={190}
                />
              )}
            </Visible>
          </Part>
        ))}
        <Part id="history" title="Best so far" note="by time since the start">
          <History
            rows={chosen}
            metric={axes.metric}
            smaller={judge.smaller}
            start={Date.parse(experiment.startTime) / 1000}
            tint={tint}
            onOpen={open}
            height={190}
          />
        </Part>
        <Part id="distribution" title="Distribution" note={`trials by ${judge.name}`}>
          <Distribution rows={chosen} name={judge.name} height={190} />
        </Part>
        <Front
          experiment={experiment}
          rows={chosen}
          metric={axes.metric}
          smaller={judge.smaller}
          names={names}
          topics={topics}
          tint={tint}
          onOpen={open}
        />
      </div>
      <Part id="timeline" title="Trials in time" note="from start to end, by state">
        <Timeline trials={trials} endings={endings} start={Date.parse(experiment.startTime)} onOpen={(id) => navigateTo(rows, id, open)} />
      </Part>
    </>
  );
}

function navigateTo(rows: Row[], id: number, open: (row: Row) => void) {
  const row = rows.find((row) => row.trial.id === id);
  if (row) open(row);
}
