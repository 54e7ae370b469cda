/** Colours the cells of a column by value: the better, the stronger; for other numbers, the greater, the stronger. */

import { scaleOf, shareOn, type Scale } from "../../charts/looks";
import { BEST, type Column, type Row } from "../../lists/columns";

/** Numbers whose size means nothing. */
const NOT = new Set(["id", "forkedFrom"]);
export const heatable = (column: Column) => column.num === true && !NOT.has(column.id);

/** Parses the form used in the link; `1` is the old form for the best value alone. */
export const readHeat = (text: string | null) => (text === "1" ? [BEST] : (text ?? "").split(",").filter(Boolean));

function numberOf(id: string, { experiment, values }: Row): number | null {
  const value =
    id === BEST
      ? experiment.bestTrialSearcherMetric
      : values && id in values
        ? values[id]
        : (experiment as unknown as Record<string, unknown>)[id];
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : null;
}

/** Identifies values that are comparable: best values of the same metric, in the same group. */
const spanOf = (id: string, row: Row, group?: (row: Row) => string) =>
  JSON.stringify([group?.(row) ?? "", id === BEST ? row.experiment.searcherMetric : ""]);

/** How strongly each cell of a column is coloured, 0 to 1; null if there is nothing to compare. */
export function heatOf(id: string, rows: Row[], group?: (row: Row) => string): (row: Row) => number | null {
  const values = new Map<string, number[]>();
  for (const row of rows) {
    const value = numberOf(id, row);
    const span = spanOf(id, row, group);
    if (value === null) continue;
    if (values.has(span)) values.get(span)!.push(value);
    else values.set(span, [value]);
  }
  const scales = new Map([...values].map(([span, some]): [string, Scale] => [span, scaleOf(some)]));
  return (row) => {
    const value = numberOf(id, row);
    const scale = scales.get(spanOf(id, row, group));
    if (value === null || !scale || scale.low === scale.high) return null;
    const share = shareOn(scale, value);
    return id === BEST && row.experiment.smallerIsBetter ? 1 - share : share;
  };
}
