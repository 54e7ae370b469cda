/**
 * One Tab stop for many controls: Tab leads to one of them and then on, and the arrow keys move among them, as in the
 * grids and toolbars of WAI-ARIA. Without it, Tab would stop at every control of every row.
 */

import { type RefObject, useEffect } from "react";

/** Text fields, choices and sliders need the arrow keys for themselves, so each stays a Tab stop. */
const CONTROLS = "a[href], button, input[type=checkbox]";

export interface Place {
  row: number;
  /** Horizontal centre, in any unit. */
  x: number;
}

/** Index of the control to go to from `now`; -1 to stay. Places are in order of the document. */
export function neighbour(places: readonly Place[], now: number, key: string): number {
  const here = places[now];
  if (!here) return -1;
  const inRow = (row: number) => places.flatMap((place, at) => (place.row === row ? [at] : []));
  const own = inRow(here.row);
  const at = own.indexOf(now);
  if (key === "ArrowRight") return own[at + 1] ?? -1;
  if (key === "ArrowLeft") return own[at - 1] ?? -1;
  if (key === "Home") return own[0]!;
  if (key === "End") return own.at(-1)!;
  const rows = [...new Set(places.map((place) => place.row))];
  const by = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  const other = by && rows[rows.indexOf(here.row) + by];
  if (!by || other === undefined) return -1;
  const away = (index: number) => Math.abs(places[index]!.x - here.x);
  return inRow(other as number).reduce((best, index) => (away(index) < away(best) ? index : best));
}

interface Roving {
  /** Within which elements the controls are; everything in the box by default. */
  within?: string;
  controls?: string;
  /** The rows; without it, all controls are one row. */
  rows?: string;
  /** Where Tab leads to at first; the first control by default. */
  first?: string;
  /** Whether the box is there yet. */
  there?: boolean;
}

/** Makes the controls in `box` one Tab stop. Controls that come later, as in a list that scrolls, are included. */
export function useRoving(box: RefObject<HTMLElement | null>, { within, controls = CONTROLS, rows, first, there = true }: Roving = {}) {
  useEffect(() => {
    const element = box.current;
    if (!element || !there) return;
    const every = `${within ?? "*"} :is(${controls}):not(:disabled)`;
    const elements = () => [...element.querySelectorAll<HTMLElement>(every)];
    let current: HTMLElement | null = null;
    const settle = () => {
      const all = elements();
      if (!current || !all.includes(current)) current = (first && all.find((element) => element.matches(first))) || all[0] || null;
      for (const element of all) {
        const stop = element === current ? 0 : -1;
        if (element.tabIndex !== stop) element.tabIndex = stop;
      }
    };
    const focused = ({ target }: FocusEvent) => {
      if (!(target as Element).matches(every) || target === current) return;
      current = target as HTMLElement;
      settle();
    };
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (!/^(Arrow|Home|End)/.test(event.key) || !element.contains(event.target as Node)) return;
      const all = elements().filter((element) => element.getClientRects().length);
      const lines = rows ? all.map((element) => element.closest(rows)) : [];
      const places = all.map((element, at) => {
        const { left, width } = element.getBoundingClientRect();
        return { row: lines.indexOf(lines[at]!), x: left + width / 2 };
      });
      const next = all[neighbour(places, all.indexOf(event.target as HTMLElement), event.key)];
      if (!next) return;
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
    };
    settle();
    const watch = new MutationObserver(settle);
    watch.observe(element, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled", "href"] });
    element.addEventListener("focusin", focused);
    // After the handlers of the page, some of which use the arrow keys for something else.
    document.addEventListener("keydown", press);
    return () => {
      watch.disconnect();
      element.removeEventListener("focusin", focused);
      document.removeEventListener("keydown", press);
    };
  }, [box, within, controls, rows, first, there]);
}
