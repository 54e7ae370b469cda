import type { ReactNode } from "react";

import type { Axis } from "../../../charts/search/axes";
import { number } from "../../../parts/format";
import { Card } from "../../../ui/card";

/** A plot of a search. */
export const Part = ({ id, title, note, children }: { id: string; title: string; note?: ReactNode; children: ReactNode }) => (
  <Card id={id} title={title} flush more={typeof note === "string" ? note && <span className="cut">{note}</span> : note}>
    <div className="drawn-in">{children}</div>
  </Card>
);

/** How to read a plot, of lines along axes or of dots. */
export const Key = ({ metric, smaller, of }: { metric: Axis; smaller: boolean; of: "lines" | "dots" }) => (
  <ul className="chart-foot">
    <li className="tn">
      {number(smaller ? metric.high : metric.low, 3)} <i className="ramp" aria-hidden /> {number(smaller ? metric.low : metric.high, 3)}{" "}
      {metric.name}
    </li>
    <li className="ink3">{of === "lines" ? "dashed: stopped early · dotted: failed" : "ring: stopped early · cross: failed"}</li>
    {of === "lines" && <li className="ink3 end">drag along an axis to choose trials; drag its name to move it</li>}
  </ul>
);
