/**
 * Assigns the twelve colours to chosen trials: a trial takes a slot when it is chosen and keeps it while it stays
 * chosen.
 */

export const SLOTS = 12;
/** Slots above this are dashed, which tells them from the first six. */
const SOLID = 6;
const DASH = [6, 3];
export const REST = "--s-rest";

/** Slot of each chosen trial, 1 to 12, in the order in which the trials were chosen. */
export type Chosen = ReadonlyMap<number, number>;

export const NONE: Chosen = new Map();

/**
 * Parses the form used in the address: `164.1,171.2`; `0` means that nothing is chosen. If two trials would share a
 * slot, the later one moves.
 */
export function readChosen(text: string | null): Chosen | null {
  if (text === null) return null;
  const pairs = text.split(",").map((pair) => pair.split(".").map(Number));
  const valid = pairs.filter(([trial, slot]) => Number.isInteger(trial) && trial! > 0 && (slot === undefined || Number.isInteger(slot)));
  if (!valid.length && text !== "0") return null;
  return valid.reduce<Chosen>((chosen, [trial, slot]) => (chosen.has(trial!) ? chosen : choose(chosen, trial!, slot)), NONE);
}

export const writeChosen = (chosen: Chosen) => [...chosen].map(([trial, slot]) => `${trial}.${slot}`).join(",") || "0";

/** Adds a trial, in `slot` if that is free, otherwise in the lowest free slot. There are twelve slots. */
export function choose(chosen: Chosen, trial: number, slot?: number): Chosen {
  if (chosen.has(trial) || chosen.size >= SLOTS) return chosen;
  const taken = new Set(chosen.values());
  const free = slot && slot >= 1 && slot <= SLOTS && !taken.has(slot) ? slot : lowest(taken);
  return new Map([...chosen, [trial, free]]);
}

function lowest(taken: Set<number>): number {
  let slot = 1;
  while (taken.has(slot)) slot++;
  return slot;
}

export const drop = (chosen: Chosen, trial: number): Chosen => new Map([...chosen].filter(([id]) => id !== trial));

/** Gives a chosen trial another colour; the trial that had that colour gets the former one. */
export function recolour(chosen: Chosen, trial: number, slot: number): Chosen {
  const former = chosen.get(trial);
  if (former === undefined) return choose(chosen, trial, slot);
  return new Map([...chosen].map(([id, now]) => [id, id === trial ? slot : now === slot ? former : now]));
}

export const BEST = 5;
/** The default choice: the best trials. */
export const bestOf = (ranked: number[], most = BEST): Chosen =>
  ranked.slice(0, most).reduce<Chosen>((chosen, trial) => choose(chosen, trial), NONE);

/**
 * Trials of several experiments: each keeps the slot that it has on the page of its experiment. Where two meet, the later
 * one takes the lowest free slot, as do trials that have none there. `choices` is in the order of the experiments.
 */
export function inCommon(choices: Chosen[], shown: number[]): Chosen {
  const there = new Set(shown);
  const pairs = [
    ...choices.flatMap((chosen) => [...chosen]).filter(([trial]) => there.has(trial)),
    ...shown.map((trial) => [trial] as const),
  ];
  return pairs.reduce<Chosen>((chosen, [trial, slot]) => choose(chosen, trial, slot), NONE);
}

export const slotColour = (slot: number | undefined) => (slot ? `--s${slot}` : REST);
export const slotDash = (slot: number | undefined) => (slot && slot > SOLID ? DASH : []);
