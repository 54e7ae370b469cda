/** Finds similarly spelled names. */

function distance(written: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= written.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (written[i - 1] === other[j - 1] ? 0 : 1)));
    row = next;
  }
  return row.at(-1)!;
}

const MOST = 60;

/** The `many` known names nearest to `written`, nearest first; names that differ too much are left out. */
export function nearest(written: string, names: string[], many = 3): string[] {
  const text = written.slice(0, MOST).toLowerCase();
  const far = (name: string) => (text.length > 2 && name.toLowerCase().startsWith(text) ? 0 : distance(text, name.toLowerCase()));
  return names
    .map((name) => [far(name), name] as const)
    .filter(([off, name]) => off <= Math.max(2, name.length * 0.6))
    .toSorted(([a], [b]) => a - b)
    .slice(0, many)
    .map(([, name]) => name);
}
