/** Events as rows of a list. Consecutive progress reports share a row, so that decisions stay in view. */

import type { Step } from "./story";

export type Row = { kind: "one"; step: Step } | { kind: "several"; key: number; steps: Step[] };

const ROUTINE = new Set(["trial.progressed"]);
/** Shorter groups are not worth folding. */
const LEAST = 4;

/** Rows in the order of the steps; `here` is the position of the selected event, which always has a row of its own. */
export function rowsOf(steps: Step[], here = 0): Row[] {
  const rows: Row[] = [];
  let run: Step[] = [];
  const close = () => {
    if (run.length >= LEAST) rows.push({ kind: "several", key: Math.min(...run.map((step) => step.position)), steps: run });
    else rows.push(...run.map((step): Row => ({ kind: "one", step })));
    run = [];
  };
  for (const step of steps) {
    if (ROUTINE.has(step.name) && step.position !== here) run.push(step);
    else {
      close();
      rows.push({ kind: "one", step });
    }
  }
  close();
  return rows;
}

const NAMED = 3;

/** `24 reports of progress, of trials 11 and 37` */
export function saidOf(steps: Step[]): string {
  const trials = [...new Set(steps.map((step) => step.about.id))].sort((a, b) => Number(a) - Number(b));
  const named = trials.slice(0, NAMED);
  const rest = trials.length - named.length;
  const last = rest > 0 ? `${rest.toLocaleString("en")} more` : named.length > 1 ? named.pop()! : "";
  return `${steps.length.toLocaleString("en")} reports of progress, of ${trials.length > 1 ? "trials" : "trial"} ${named.join(", ")}${last && ` and ${last}`}`;
}

/** Joins the known steps with the newest ones; returns only the newest if steps may be missing between the two. */
export function joined(held: Step[], newest: Step[]): Step[] {
  const first = newest[0];
  if (!first) return held;
  const last = held.at(-1);
  if (!last || last.position < first.position) return newest;
  return [...held.filter((step) => step.position < first.position), ...newest];
}
