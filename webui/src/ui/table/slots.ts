/**
 * Assigns DOM elements to rendered rows: rows that leave the window pass theirs on, which costs half as much as
 * creating new ones.
 */

import { type RefObject, useLayoutEffect, useRef } from "react";

type Id = string | number;

/** Rows that stay keep their slot; new rows take the slots of rows that left, or new ones if there are none. */
export function slotsOf(before: ReadonlyMap<Id, number>, ids: readonly Id[]): Map<Id, number> {
  const stay = new Set(ids);
  const free = [...before].flatMap(([id, slot]) => (stay.has(id) ? [] : [slot])).reverse();
  let next = Math.max(-1, ...before.values()) + 1;
  return new Map(ids.map((id) => [id, before.get(id) ?? free.pop() ?? next++]));
}

/** Slots for the rows rendered now. The focus stays in the table, and never moves to another row by itself. */
export function useSlots(box: RefObject<HTMLElement | null>, ids: readonly Id[]): ReadonlyMap<Id, number> {
  const current = useRef<ReadonlyMap<Id, number>>(new Map());
  const slots = slotsOf(current.current, ids);
  useLayoutEffect(() => {
    const there = document.activeElement?.closest<HTMLElement>("tr[data-id]");
    const moved = there && box.current?.contains(there) && there.dataset.id !== focused.current;
    if (moved) box.current?.focus({ preventScroll: true });
    current.current = slots;
  });
  const focused = useRef<string | undefined>(undefined);
  useLayoutEffect(() => {
    const table = box.current;
    const note = (event: FocusEvent) => {
      focused.current = (event.target as Element).closest<HTMLElement>("tr[data-id]")?.dataset.id;
    };
    table?.addEventListener("focusin", note);
    return () => table?.removeEventListener("focusin", note);
  }, [box]);
  return slots;
}
