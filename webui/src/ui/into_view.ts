/** What scrolls sideways shows its current part, wherever that stands. */

import { type RefObject, useLayoutEffect, useRef } from "react";

const CURRENT = '[aria-current="page"], [aria-pressed="true"]';

/** For the box of tabs or places; `current` tells when another one is the current one. The page itself is not scrolled. */
export function useCurrentInView<T extends HTMLElement>(current: unknown): RefObject<T | null> {
  const box = useRef<T>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is looked at again when another part is the current one
  useLayoutEffect(() => {
    const part = box.current?.querySelector<HTMLElement>(CURRENT);
    if (!box.current || !part) return;
    const [outer, inner] = [box.current.getBoundingClientRect(), part.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right)
      box.current.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }, [current]);
  return box;
}
