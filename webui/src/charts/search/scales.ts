/** Scales of hyperparameters, from the configuration. */

import type { Config } from "../../api/types";

export interface Ranged {
  kind: "log" | "int" | "linear" | "choice";
  /** The range of the search; null for categorical values. */
  span: [number, number] | null;
}

/** By name, `a.b` for `b` within `a`; constants have none. */
export function scalesOf(config: Config): Map<string, Ranged> {
  const scales = new Map<string, Ranged>();
  collect(config.hyperparameters ?? {}, "", scales);
  return scales;
}

function collect(tree: Record<string, any>, above: string, scales: Map<string, Ranged>) {
  for (const [name, node] of Object.entries(tree)) {
    if (node === null || typeof node !== "object" || Array.isArray(node)) continue;
    const ranged = rangedOf(node);
    if (ranged) scales.set(above + name, ranged);
    else if (node.type !== "const") collect(node, `${above}${name}.`, scales);
  }
}

function rangedOf(node: Record<string, any>): Ranged | null {
  const span: [number, number] = [Number(node.minval), Number(node.maxval)];
  switch (node.type) {
    case "log": {
      const base = Number(node.base ?? 10);
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
