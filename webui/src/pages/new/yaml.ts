/**
 * Finds the position in a configuration that is still being written. It may be incomplete, so only its indentation is
 * parsed.
 */

export interface Known {
  path: string;
  kind: string;
  default: unknown;
  required: boolean;
  words: string[];
  only: string[];
}

interface Place {
  indent: number;
  key: string;
}

const KEY = /^(\s*)((?:- )*)("[^"]*"|'[^']*'|[\w.$-]+)\s*:(.*)$/;

/** The path of keys that leads to each line, by line number from 0; `[]` marks list items. */
export function pathsOf(text: string): string[] {
  const stack: Place[] = [];
  return text.split("\n").map((line) => {
    const match = KEY.exec(line);
    if (!match) return stack.map((field) => field.key).join(".");
    const [, space, dashes, name] = match as unknown as [string, string, string, string];
    const indent = space.length + dashes.length;
    while (stack.length && stack.at(-1)!.indent >= indent) stack.pop();
    const above = stack.at(-1);
    if (dashes && above && !above.key.endsWith("[]")) above.key += "[]";
    stack.push({ indent, key: name.replace(/^["']|["']$/g, "") });
    return stack.map((field) => field.key).join(".");
  });
}

/**
 * The line of an error's path, such as `hyperparameters.lr.minval` or `bind_mounts[0].host_path`; 0 if there is none.
 */
export function lineOf(text: string, path: string): number {
  const paths = pathsOf(text);
  for (let names = path.replace(/\[\d+\]/g, "[]").split("."); names.length; names = names.slice(0, -1)) {
    const wanted = names.join(".").replaceAll("[]", "");
    const at = paths.findIndex((field) => field.replaceAll("[]", "") === wanted);
    if (at >= 0) return at;
  }
  return 0;
}

export interface Wrong {
  path: string;
  message: string;
  line: number;
}

/** The server's errors, by field. */
export function wrongs(text: string, answer: string): Wrong[] {
  const faults = [...answer.matchAll(/<(?:config|defaults\[\d+\])>\.?([^:\n]*): ([^\n]*)/g)].map(([, path, message]) => ({
    path: path!,
    message: message!,
    line: lineOf(text, path!),
  }));
  if (faults.length) return faults;
  const line = /line (\d+)/.exec(answer);
  return [{ path: "", message: answer, line: line ? Number(line[1]) - 1 : 0 }];
}

/** The schema's field for a path of the text. */
export function fieldAt(fields: Known[], path: string): Known | undefined {
  return fields.find((field) => fits(field.path, path));
}

function fits(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split("."), path.split(".")];
  return (
    wanted.length === given.length && wanted.every((name, at) => name === "*" || name.replace("[]", "") === given[at]!.replace("[]", ""))
  );
}

export interface Offer {
  /** Replaces the typed word. */
  insert: string;
  label: string;
  hint: string;
}

export interface Offers {
  /** Start of the typed word. */
  from: number;
  offers: Offer[];
}

/** Completions at a position of the text. */
export function offers(text: string, at: number, fields: Known[]): Offers {
  const begin = text.lastIndexOf("\n", at - 1) + 1;
  const line = text.slice(begin, at);
  const value = /^(\s*(?:- )*)([\w.$-]+):\s+(\S*)$/.exec(line);
  const lines = text.slice(0, begin).split("\n");
  if (value) {
    const typed = value[3]!;
    const here = fieldAt(fields, pathsOf([...lines.slice(0, -1), line].join("\n")).at(-1)!);
    const words = here?.words.length ? here.words : here?.kind === "true or false" ? ["true", "false"] : [];
    return {
      from: at - typed.length,
      offers: words.filter((word) => word.startsWith(typed) && word !== typed).map((word) => ({ insert: word, label: word, hint: "" })),
    };
  }
  const key = /^(\s*(?:- )*)([\w]*)$/.exec(line);
  if (!key) return { from: at, offers: [] };
  const [, lead, typed] = key as unknown as [string, string, string];
  const above = mapAround(lines.slice(0, -1), lead.length);
  const words = wordsBeside(text, above);
  const prefix = above ? `${above}.` : "";
  const here = new Set(pathsOf(text).filter((path) => path.startsWith(prefix)));
  const fitting = fields.filter((field) => {
    const names = field.path.split(".");
    const name = names.at(-1)!;
    return (
      name !== "*" &&
      !name.includes("[") &&
      name.startsWith(typed) &&
      fits([...names.slice(0, -1), "x"].join("."), `${prefix}x`) &&
      (!field.only.length || !words.length || field.only.some((word) => words.includes(word))) &&
      !here.has(`${prefix}${name}`)
    );
  });
  return {
    from: at - typed.length,
    offers: fitting.map((field) => ({
      insert: `${field.path.split(".").at(-1)}: `,
      label: field.path.split(".").at(-1)!,
      hint: hint(field),
    })),
  };
}

/** The path of the map that contains a line with this indentation. */
function mapAround(before: string[], indent: number): string {
  const paths = pathsOf(before.join("\n"));
  for (let at = before.length - 1; at >= 0; at -= 1) {
    const match = KEY.exec(before[at]!);
    if (!match) continue;
    const own = match[1]!.length + match[2]!.length;
    if (own < indent) return paths[at]!;
    if (own === indent) return paths[at]!.split(".").slice(0, -1).join(".");
  }
  return "";
}

/** Fields that decide which siblings are allowed: `name` of a searcher, `type` of a storage or hyperparameter. */
function wordsBeside(text: string, above: string): string[] {
  const paths = pathsOf(text);
  return text
    .split("\n")
    .map((line, number) => ({ path: paths[number]!, value: /:\s*["']?([\w-]+)/.exec(line)?.[1] ?? "" }))
    .filter((field) => field.path === `${above}.name` || field.path === `${above}.type`)
    .map((field) => field.value)
    .filter(Boolean);
}

export const hint = (field: Known) => [field.kind, field.required ? "required" : shown(field.default)].filter(Boolean).join(", ");

const shown = (value: unknown) =>
  value === null || value === undefined || (typeof value === "object" && !Object.keys(value as object).length)
    ? ""
    : `${JSON.stringify(value)} by default`;
