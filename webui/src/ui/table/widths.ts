/** How wide columns are in the room that a table has. */

import { type RefObject, useLayoutEffect, useState } from "react";

import type { Column } from "./types";

export interface Wish {
  width: number;
  /** What its heading needs, which comes before more room for cells. */
  head: number;
  /** What it can be narrowed to before the table scrolls sideways. */
  least: number;
  /** What it takes if there is room; beyond that, columns that grow share what is left. */
  most: number;
  grows: boolean;
}

/** Room for any number of four digits, such as -0.003461: one that is cut reads as another. */
export const NUMBER_PX = 90;
const NAME = { width: 220, least: 150, most: 420 };
const LETTER = 7;
/** Padding of a heading, and the arrow of a sorted one. */
const BESIDE = 36;
const MOST_HEAD = 240;

/** `own` is the width that the user gave it, which stays. */
export function wishOf<T>(column: Column<T>, own: number | undefined): Wish {
  if (own !== undefined) return { width: own, head: own, least: own, most: own, grows: false };
  const grows = column.width === undefined;
  const width = column.width ?? NAME.width;
  const head = Math.min(MOST_HEAD, column.head.length * LETTER + BESIDE);
  const most = column.most ?? (grows ? NAME.most : Math.max(width, head));
  return {
    width,
    head: Math.max(width, Math.min(head, most)),
    least: column.least ?? (grows ? NAME.least : width),
    most,
    grows,
  };
}

const total = (widths: readonly number[]) => widths.reduce((all, column) => all + column, 0);

/** The widths, nearer to `limits` by as much as `over` allows; all of them go the same share of their way. */
function towards(widths: readonly number[], limits: readonly number[], over: number): number[] {
  const way = total(limits) - total(widths);
  const share = Math.min(1, over / (way || over || 1));
  return widths.map((width, at) => width + Math.floor((limits[at]! - width) * share));
}

/** Each column's width; their sum is `room` unless not even their least widths fit. */
export function fitted(wishes: readonly Wish[], room: number): number[] {
  const of = (name: "width" | "head" | "least" | "most") => wishes.map((column) => column[name]);
  const over = room - total(of("width"));
  const headed = over < 0 ? of("width") : towards(of("width"), of("head"), over);
  const near = towards(headed, of(over < 0 ? "least" : "most"), room - total(headed));
  const rest = Math.max(0, room - total(near));
  const growing = wishes.filter((column) => column.grows).length;
  // Without a column that grows, the browser spreads the rest.
  return wishes.map((column, at) => near[at]! + (column.grows && over > 0 ? rest / growing : 0));
}

/** Width of a table's box without its scroll bar; 0 before it is drawn. */
export function useRoom(box: RefObject<HTMLElement | null>, there: boolean): number {
  const [room, setRoom] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: an empty table has no box
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    // It is rounded, and half a pixel too many would scroll.
    const look = () => setRoom(element.clientWidth - 1);
    look();
    const watch = new ResizeObserver(look);
    watch.observe(element);
    return () => watch.disconnect();
  }, [box, there]);
  return room;
}
