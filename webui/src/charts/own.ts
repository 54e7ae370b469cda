/** Settings of a single chart, and which charts are pinned; the address holds both. */

import { useMemo } from "react";

import { readNames, readRange, useLink, writeNames, writeRange } from "./link";

export interface Own {
  /** Null if the chart follows the setting of the page. */
  log: boolean | null;
  /** Clips outliers. */
  clip: boolean;
  range: [number, number] | null;
}

const PLAIN: Own = { log: null, clip: false, range: null };

/** `name~log~clip~0..1!name~linear` */
export function readOwn(text: string | null): Map<string, Own> {
  const byName = new Map<string, Own>();
  for (const entry of (text ?? "").split("!").filter(Boolean)) {
    const [name, ...words] = entry.split("~");
    const log = words.includes("log") ? true : words.includes("linear") ? false : null;
    const range = words.map(readRange).find((each) => each !== null) ?? null;
    if (name) byName.set(decodeURIComponent(name), { log, clip: words.includes("clip"), range });
  }
  return byName;
}

const escaped = (name: string) => encodeURIComponent(name).replaceAll("~", "%7e").replaceAll("!", "%21");

export function writeOwn(all: Map<string, Own>): string {
  return [...all]
    .map(([name, { log, clip, range }]) => {
      const words = [log === null ? "" : log ? "log" : "linear", clip ? "clip" : "", writeRange(range)].filter(Boolean);
      return words.length ? [escaped(name), ...words].join("~") : "";
    })
    .filter(Boolean)
    .join("!");
}

export function useOwn(name: string): [Own, (change: Partial<Own>) => void] {
  const { params, set } = useLink();
  const text = params.get("cs");
  const all = useMemo(() => readOwn(text), [text]);
  const own = all.get(name) ?? PLAIN;
  return [own, (change) => set({ cs: writeOwn(new Map([...all, [name, { ...own, ...change }]])) })];
}

const KEPT = "pinned";

/** A metric is pinned by name in every experiment; a link may hold other pins. */
export function usePins(): { pinned: string[]; pin: (name: string) => void } {
  const { params, set } = useLink();
  const text = params.get("pin") ?? localStorage.getItem(KEPT) ?? "";
  const pinned = useMemo(() => readNames(text), [text]);
  const pin = (name: string) => {
    const next = writeNames(pinned.includes(name) ? pinned.filter((other) => other !== name) : [...pinned, name]);
    localStorage.setItem(KEPT, next);
    set({ pin: params.has("pin") || next ? next : "" });
  };
  return { pinned, pin };
}
