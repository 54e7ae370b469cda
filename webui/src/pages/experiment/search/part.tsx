import type { ReactNode } from "react";

import type { Axis } from "../../../charts/search/axes";
import { number } from "../../../parts/format";
import { Card } from "../../../ui/card";

/** A plot of a search. */
export const Part = ({ id, title, said, children }: { id: string; title: string; said?: ReactNode; children: ReactNode }) => (
  <Card id={id} title={title} flush more={typeof said === "string" ? said && <span className="cut">{said}</span> : said}>
    <div className="drawn-in">{children}</div>
  </Card>
);

export const Key = ({ metric, smaller }: { metric: Axis; smaller: boolean }) => (
  <ul className="chart-foot">
    <li className="tn">
      {number(smaller ? metric.high : metric.low, 3)} <i className="ramp" aria-hidden /> {number(smaller ? metric.low : metric.high, 3)}{" "}
      {metric.name}
    </li>
    <li className="ink3">dashes, ring: stopped early · dots, cross: failed</li>
    <li className="ink3 end">drag an axis to choose, its name to move it</li>
  </ul>
);
