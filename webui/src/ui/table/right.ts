import { type RefObject, useEffect, useState } from "react";

/** Of a cell, which may be out of sight. */
const PADDING = 12;

/** How many columns are hidden beyond the right edge, wholly or in part. */
export function useHiddenRight(box: RefObject<HTMLElement | null>, columns: number): number {
  const [hidden, setHidden] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of columns needs a new count
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let seen = -1;
    const count = () => {
      seen = element.scrollLeft;
      element.dataset.moved = String(element.scrollLeft > 0);
      element.dataset.wide = String(element.scrollWidth > element.clientWidth + 1);
      const pinned = element.querySelector<HTMLElement>("thead .act")?.offsetWidth ?? 0;
      const edge = element.scrollLeft + element.clientWidth - pinned;
      const heads = [...element.querySelectorAll<HTMLElement>("thead th[data-column]:not(.pin)")];
      setHidden(heads.filter((head) => head.offsetLeft + head.offsetWidth - PADDING > edge).length);
    };
    count();
    // Measuring can force a layout, so skip it for vertical scrolling, which hides no columns.
    const moved = () => element.scrollLeft !== seen && count();
    const watch = new ResizeObserver(count);
    watch.observe(element);
    if (element.firstElementChild) watch.observe(element.firstElementChild);
    element.addEventListener("scroll", moved, { passive: true, capture: true });
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", moved, { capture: true });
    };
  }, [box, columns]);
  return hidden;
}
