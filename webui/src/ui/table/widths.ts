/** How wide columns are in the room that a table has. */

import { type RefObject, useLayoutEffect, useState } from "react";

import type { Column } from "./types";

export interface Wish {
  width: number;
  /** What it can be narrowed to before the table scrolls sideways. */
  least: number;
  /** What it takes if there is room; beyond that, columns that grow share what is left. */
  most: number;
  grows: boolean;
}

const NAME = { width: 220, least: 150, most: 420 };
const LETTER = 7;
/** Padding of a heading, and the arrow of a sorted one. */
const BESIDE = 36;
const MOST_HEAD = 240;

/** `own` is the width that the user gave it, which stays. */
export function wishOf<T>(one: Column<T>, own: number | undefined): Wish {
  if (own !== undefined) return { width: own, least: own, most: own, grows: false };
  const grows = one.width === undefined;
  const width = one.width ?? NAME.width;
  const head = Math.min(MOST_HEAD, one.head.length * LETTER + BESIDE);
  return {
    width,
    least: one.least ?? (grows ? NAME.least : width),
    most: one.most ?? (grows ? NAME.most : Math.max(width, head)),
    grows,
  };
}

/** Each column's width; their sum is `room` unless not even their least widths fit. */
export function fitted(wishes: readonly Wish[], room: number): number[] {
  const sum = (of: (one: Wish) => number) => wishes.reduce((all, one) => all + of(one), 0);
  const over = room - sum((one) => one.width);
  const limit = (one: Wish) => (over < 0 ? one.least : one.most) - one.width;
  const share = Math.min(1, over / (sum(limit) || over || 1));
  const near = wishes.map((one) => one.width + Math.floor(limit(one) * share));
  const rest = Math.max(0, room - near.reduce((all, one) => all + one, 0));
  const growing = wishes.filter((one) => one.grows).length;
  // Without a column that grows, the browser spreads the rest.
  return wishes.map((one, at) => near[at]! + (one.grows && over > 0 ? rest / growing : 0));
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
