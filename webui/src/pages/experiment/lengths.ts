/** Training lengths and hyperparameters as people write them. */

export interface Length {
  count: number;
  /** Empty if the configuration gives a bare number. */
  unit: string;
}

/** Parses `searcher.max_length`: a number, or a number with a unit. */
export function lengthOf(configured: unknown): Length {
  if (typeof configured === "number") return { count: configured, unit: "" };
  const [entry] = Object.entries((configured ?? {}) as Record<string, number>);
  return entry ? { count: Number(entry[1]), unit: entry[0] } : { count: 0, unit: "" };
}

export const asConfigured = ({ count, unit }: Length) => (unit ? { [unit]: count } : count);

/** Why a trial cannot be continued to this length; empty if it can. */
export function wrongLength(text: string, reached: number): string {
  const count = Number(text);
  if (!text.trim() || !Number.isInteger(count) || count <= 0) return "Enter a whole number above 0.";
  return count <= reached ? `It has already reached ${reached.toLocaleString("en")}. Enter more than that.` : "";
}

/** Parses one change per line, such as `optimizer.lr: 1e-4`; a value that is neither a number nor JSON stays text. */
export function readChanges(text: string): { changes: Record<string, unknown>; error: string } {
  const changes: Record<string, unknown> = {};
  for (const [at, line] of text.split("\n").entries()) {
    if (!line.trim()) continue;
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(\S.*)$/.exec(line) ?? [];
    if (!name || value === undefined) return { changes, error: `Line ${at + 1}: write it as name: value.` };
    changes[name] = parsed(value.trim());
  }
  return { changes, error: "" };
}

function parsed(text: string): unknown {
  const number = Number(text);
  if (Number.isFinite(number)) return number;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type Tree = Record<string, any>;
/**
 * The hyperparameters with some of them changed; `a.b` is `b` within `a`. Reports a name that is not a hyperparameter.
 */
export function changed(hyperparameters: Tree, changes: Record<string, unknown>): { made: Tree; unknown: string[] } {
  const made: Tree = structuredClone(hyperparameters);
  const unknown = Object.entries(changes).flatMap(([name, value]) => (put(made, name, value) ? [] : [name]));
  return { made, unknown };
}

function put(tree: Tree, name: string, value: unknown): boolean {
  if (name in tree) {
    tree[name] = value;
    return true;
  }
  const [head, ...rest] = name.split(".");
  const inner = tree[head!];
  return rest.length > 0 && inner !== null && typeof inner === "object" && put(inner, rest.join("."), value);
}
