import { type RefObject, useEffect, useState } from "react";

/** How many columns are out of sight at the right. */
export function useHiddenRight(box: RefObject<HTMLElement | null>, columns: number): number {
  const [hidden, setHidden] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other columns are to be counted anew
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const count = () => {
      element.dataset.moved = String(element.scrollLeft > 0);
      const pinned = element.querySelector<HTMLElement>("thead .act")?.offsetWidth ?? 0;
      const edge = element.scrollLeft + element.clientWidth - pinned;
      const heads = [...element.querySelectorAll<HTMLElement>("thead th[data-column]:not(.pin)")];
      setHidden(heads.filter((head) => head.offsetLeft + head.offsetWidth / 2 > edge).length);
    };
    count();
    const watch = new ResizeObserver(count);
    watch.observe(element);
    element.addEventListener("scroll", count, { passive: true });
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", count);
    };
  }, [box, columns]);
  return hidden;
}
