/** Which chosen trial has which of the twelve colours: a slot is taken when a trial is chosen, and kept while it is. */

export const SLOTS = 12;
/** Colours from here on are drawn dashed: their strokes tell them from the first six. */
const SOLID = 6;
const DASH = [6, 3];
export const REST = "--s-rest";

/** Slot of each chosen trial, 1 to 12, in the order in which they were chosen. */
export type Chosen = ReadonlyMap<number, number>;

export const NONE: Chosen = new Map();

/** As it stands in the address: `164.1,171.2`; `0` says that nothing is chosen. Where two would share a slot, the later one moves. */
export function readChosen(text: string | null): Chosen | null {
  if (text === null) return null;
  const pairs = text.split(",").map((one) => one.split(".").map(Number));
  const known = pairs.filter(([trial, slot]) => Number.isInteger(trial) && trial! > 0 && (slot === undefined || Number.isInteger(slot)));
  if (!known.length && text !== "0") return null;
  return known.reduce<Chosen>((chosen, [trial, slot]) => (chosen.has(trial!) ? chosen : choose(chosen, trial!, slot)), NONE);
}

export const writeChosen = (chosen: Chosen) => [...chosen].map(([trial, slot]) => `${trial}.${slot}`).join(",") || "0";

/** With one trial more, in the slot that it wishes for where that is free, else in the lowest free one. Twelve are the most. */
export function choose(chosen: Chosen, trial: number, wish?: number): Chosen {
  if (chosen.has(trial) || chosen.size >= SLOTS) return chosen;
  const taken = new Set(chosen.values());
  const free = wish && wish >= 1 && wish <= SLOTS && !taken.has(wish) ? wish : lowest(taken);
  return new Map([...chosen, [trial, free]]);
}

function lowest(taken: Set<number>): number {
  let slot = 1;
  while (taken.has(slot)) slot++;
  return slot;
}

export const drop = (chosen: Chosen, trial: number): Chosen => new Map([...chosen].filter(([one]) => one !== trial));

/** Another colour for a chosen trial; whoever has that one takes the former. */
export function recolour(chosen: Chosen, trial: number, slot: number): Chosen {
  const former = chosen.get(trial);
  if (former === undefined) return choose(chosen, trial, slot);
  return new Map([...chosen].map(([one, now]) => [one, one === trial ? slot : now === slot ? former : now]));
}

const BEST = 5;
/** What is chosen where nobody has chosen: the best. */
export const bestOf = (ranked: number[], most = BEST): Chosen =>
  ranked.slice(0, most).reduce<Chosen>((chosen, trial) => choose(chosen, trial), NONE);

export const slotColour = (slot: number | undefined) => (slot ? `--s${slot}` : REST);
export const slotDash = (slot: number | undefined) => (slot && slot > SOLID ? DASH : []);
