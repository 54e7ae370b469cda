/** Scrolls a horizontal list so that its current item is visible. */

import { type RefObject, useLayoutEffect, useRef } from "react";

const CURRENT = '[aria-current="page"], [aria-pressed="true"]';

/** For the box of tabs or places; `current` changes with the current item. The page itself does not scroll. */
export function useCurrentInView<T extends HTMLElement>(current: unknown): RefObject<T | null> {
  const box = useRef<T>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again when another item is the current one
  useLayoutEffect(() => {
    const part = box.current?.querySelector<HTMLElement>(CURRENT);
    if (!box.current || !part) return;
    const [outer, inner] = [box.current.getBoundingClientRect(), part.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right)
      box.current.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }, [current]);
  return box;
}
