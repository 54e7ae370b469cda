/** Scales of hyperparameters, from the configuration. */

import type { Config } from "../../api/types";

export interface Ranged {
  kind: "log" | "int" | "linear" | "choice";
  /** The range of the search; null for categorical values. */
  span: [number, number] | null;
}

/** By name, `a.b` for `b` within `a`; constants have none. */
export function scalesOf(config: Config): Map<string, Ranged> {
  const found = new Map<string, Ranged>();
  collect(config.hyperparameters ?? {}, "", found);
  return found;
}

function collect(tree: Record<string, any>, above: string, found: Map<string, Ranged>) {
  for (const [name, one] of Object.entries(tree)) {
    if (one === null || typeof one !== "object" || Array.isArray(one)) continue;
    const ranged = rangedOf(one);
    if (ranged) found.set(above + name, ranged);
    else if (one.type !== "const") collect(one, `${above}${name}.`, found);
  }
}

function rangedOf(one: Record<string, any>): Ranged | null {
  const span: [number, number] = [Number(one.minval), Number(one.maxval)];
  switch (one.type) {
    case "log": {
      const base = Number(one.base ?? 10);
      return { kind: "log", span: [base ** span[0], base ** span[1]] };
    }
    case "int":
      return { kind: "int", span };
    case "double":
      return { kind: "linear", span };
    case "categorical":
      return { kind: "choice", span: null };
    default:
      return null;
  }
}
