/** A search at a glance: which values do well, which hyperparameters matter, and when. */

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
import type { Shown } from "./axes";
import { Key, Part } from "./part";

const SLICES = 6;

export function Whole({
  one,
  rows,
  chosen,
  found,
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
  return (
    <>
      <div className="cols wide-left">
        <Part id="parallel" title="Parallel coordinates">
          <Parallel {...controls} rows={rows} chosen={chosen} tint={share} onOpen={open} />
          <Key metric={found.metric} smaller={judge.smaller} />
        </Part>
        <Part id="importance" title="Importance">
          <Importances rows={chosen} axes={found.shown} shareOf={share} />
        </Part>
      </div>
      <div className="grid3">
        {found.shown.slice(0, SLICES).map((axis) => (
          <Part key={axis.name} id={`slice ${axis.name}`} title={axis.name} said={axis.scale === "choice" ? "" : `${axis.scale} scale`}>
            <Visible name={axis.name} height={190}>
              {() => (
                <Dots
                  name={`${judge.name} over ${axis.name}`}
                  rows={chosen}
                  x={axis}
                  y={found.metric}
                  tint={tint}
                  onOpen={open}
                  height={190}
                />
              )}
            </Visible>
          </Part>
        ))}
        <Part id="history" title="Best so far" said="by time since the start">
          <History
            rows={chosen}
            metric={found.metric}
            smaller={judge.smaller}
            start={Date.parse(one.startTime) / 1000}
            tint={tint}
            onOpen={open}
            height={190}
          />
        </Part>
        <Part id="distribution" title="Distribution" said={`trials by ${judge.name}`}>
          <Distribution rows={chosen} name={judge.name} height={190} />
        </Part>
        <Front
          one={one}
          rows={chosen}
          metric={found.metric}
          smaller={judge.smaller}
          names={names}
          topics={topics}
          tint={tint}
          onOpen={open}
        />
      </div>
      <Part id="timeline" title="Trials in time" said="from start to end, by state">
        <Timeline trials={trials} endings={endings} start={Date.parse(one.startTime)} onOpen={(id) => navigateTo(rows, id, open)} />
      </Part>
    </>
  );
}

function navigateTo(rows: Row[], id: number, open: (row: Row) => void) {
  const row = rows.find((one) => one.trial.id === id);
  if (row) open(row);
}
