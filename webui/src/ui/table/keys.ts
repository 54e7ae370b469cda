/**
 * Keys of the rows: `j` and `k` move, `x` selects, Enter opens, `.` opens the menu, and letters are the shortcuts of
 * the menu.
 */

import { type RefObject, useRef } from "react";

import { useKey } from "../keys";
import type { MenuItems } from "../menu";

const rowOf = (element: Element | null) => element?.closest<HTMLElement>("tr[data-row]") ?? null;

export interface RowActs {
  choose?: (index: number, upTo: boolean) => void;
  actions?: (index: number) => MenuItems;
}

export function useRowKeys(box: RefObject<HTMLElement | null>, acts: RowActs) {
  const current = useRef(acts);
  current.current = acts;
  /** The row in focus, if it belongs to this table; without a focused row, the first table answers. */
  const here = (): HTMLElement | null => {
    const row = rowOf(document.activeElement);
    return row && box.current?.contains(row) ? row : null;
  };
  const mine = () => here() !== null || (rowOf(document.activeElement) === null && document.querySelector(".tw") === box.current);
  const step = (by: number) => {
    if (!mine()) return;
    const now = here();
    const at = now ? Number(now.dataset.row) + by : Number(box.current?.querySelector<HTMLElement>("tr[data-row]")?.dataset.row ?? 0);
    const next = box.current?.querySelector<HTMLElement>(`tr[data-row="${at}"]`);
    next?.querySelector<HTMLElement>("td:not(:has(> input)) :is(a, button)")?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const act = (key: string) => {
    const row = here();
    const menuItem = row && current.current.actions?.(Number(row.dataset.row)).find((item) => item?.keys?.toLowerCase() === key);
    if (menuItem && !menuItem.not) menuItem.act?.();
  };
  useKey({
    j: () => step(1),
    k: () => step(-1),
    x: () => here() && current.current.choose?.(Number(here()!.dataset.row), false),
    X: () => here() && current.current.choose?.(Number(here()!.dataset.row), true),
    ".": () => here()?.querySelector<HTMLElement>('[data-action="more"]')?.click(),
    p: () => act("p"),
    f: () => act("f"),
  });
}
