/** What differs between two texts, line by line. */

export interface Line {
  kind: "same" | "add" | "del" | "gap";
  text: string;
}
const MOST_CELLS = 4_000_000;
const AROUND = 3;

/** Lines of both, in order; longest common parts stay the same. Texts that are too long differ as a whole. */
export function diff(before: string, after: string): Line[] {
  const [old, fresh] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < fresh.length - start && old[old.length - 1 - end] === fresh[fresh.length - 1 - end]) end += 1;
  const middle = changed(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end));
  const same = (text: string): Line => ({ kind: "same", text });
  return [...old.slice(0, start).map(same), ...middle, ...old.slice(old.length - end).map(same)];
}

function changed(old: string[], fresh: string[]): Line[] {
  const lines = (kind: Line["kind"], texts: string[]) => texts.map((text): Line => ({ kind, text }));
  if (old.length * fresh.length > MOST_CELLS) return [...lines("del", old), ...lines("add", fresh)];
  const width = fresh.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = fresh.length - 1; j >= 0; j -= 1)
      longest[i * width + j] =
        old[i] === fresh[j] ? longest[(i + 1) * width + j + 1]! + 1 : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
  const found: Line[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) {
      found.push({ kind: "same", text: old[i]! });
      i += 1;
      j += 1;
    } else if (longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!) found.push({ kind: "del", text: old[i++]! });
    else found.push({ kind: "add", text: fresh[j++]! });
  }
  return [...found, ...lines("del", old.slice(i)), ...lines("add", fresh.slice(j))];
}

/** Only what differs, with some lines around it. */
export function short(lines: Line[]): Line[] {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((line) => line.kind !== "same"));
  return lines.flatMap((line, at) => (near[at] ? [line] : near[at - 1] ? [{ kind: "gap", text: "…" } as Line] : []));
}

/** Fields whose values differ, by dotted name: before and after. */
export function fields(before: Record<string, unknown>, after: Record<string, unknown>): [string, unknown, unknown][] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names
    .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
    .map((name) => [name, before[name], after[name]]);
}
