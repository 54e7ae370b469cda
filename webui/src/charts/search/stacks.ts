/** Dots along a line, stacked where they would overlap. */

/** Height of each dot above the line, in pixels: `gap` apart, or closer if a stack would exceed `room`. */
export function stacked(xs: number[], gap: number, room: number): number[] {
  const counts = new Map<number, number>();
  const places = xs.map((x) => {
    const bin = Math.round(x / gap);
    const place = counts.get(bin) ?? 0;
    counts.set(bin, place + 1);
    return place;
  });
  const highest = Math.max(1, ...counts.values());
  const step = Math.min(gap, room / highest);
  return places.map((place) => place * step);
}
