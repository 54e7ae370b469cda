/** Vertical lines in a chart: where the search judged, where a trial restarted. */

import type uPlot from "uplot";

import { FONT } from "./paint";
import { css } from "./theme";

export interface Rule {
  /** The axis that `x` belongs to: `batches`, `time` or `since`. */
  axis: string;
  at: number;
  label: string;
}

/** Leaves out labels that would overlap the one before; the lines stay. */
export function placed(rules: Rule[], axis: string, [from, to]: [number, number], width: number, letter = 6): [Rule, number, boolean][] {
  let free = -Infinity;
  return rules
    .filter((rule) => rule.axis === axis && rule.at >= from && rule.at <= to)
    .toSorted((a, b) => a.at - b.at)
    .map((rule) => {
      const left = ((rule.at - from) / (to - from)) * width;
      const named = left >= free;
      if (named) free = left + (rule.label.length + 2) * letter;
      return [rule, left, named];
    });
}

export function paintRules(u: uPlot, rules: Rule[], axis: string, x: [number, number]) {
  if (!rules.length) return;
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = css("--ink-3");
  ctx.fillStyle = css("--ink-3");
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  ctx.font = `${10.5 * ratio}px ${FONT}`;
  ctx.textBaseline = "bottom";
  for (const [rule, left, named] of placed(rules, axis, x, bbox.width, 6 * ratio)) {
    ctx.beginPath();
    ctx.moveTo(bbox.left + left, bbox.top);
    ctx.lineTo(bbox.left + left, bbox.top + bbox.height);
    ctx.stroke();
    if (named) ctx.fillText(rule.label, bbox.left + left + 4 * ratio, bbox.top + bbox.height - 3 * ratio);
  }
  ctx.restore();
}
