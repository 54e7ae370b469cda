/** Keys of lists: `j k` move, `x` selects, `Enter` opens, `c` compares, `p` pauses or activates, `.` shows actions. */

import { useEffect, useRef } from "react";

export const isTyping = (event: KeyboardEvent) =>
  event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test((event.target as HTMLElement).tagName);

const rowOf = (element: Element | null) => element?.closest<HTMLElement>("[data-row]") ?? null;

function step(by: number) {
  const now = rowOf(document.activeElement);
  const at = now ? Number(now.dataset.row) + by : Number(document.querySelector<HTMLElement>("[data-row]")?.dataset.row ?? 0);
  const next = document.querySelector<HTMLElement>(`[data-row="${at}"]`);
  next?.querySelector<HTMLElement>("a, button")?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** Presses the first of the buttons of the row at hand that can be pressed. */
function press(row: HTMLElement | null, names: string[]) {
  row?.querySelector<HTMLElement>(names.map((name) => `[data-action="${name}"]:not(:disabled)`).join(","))?.click();
}

export function useListKeys(does: { toggle: (id: number) => void; compare: () => void }) {
  const known = useRef(does);
  known.current = does;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // A box that is checked is no field to type in.
      const box = (event.target as HTMLInputElement).type === "checkbox";
      if (isTyping(event) && !box) return;
      const row = rowOf(document.activeElement);
      const id = Number(row?.dataset.id);
      if (event.key === "j") step(1);
      else if (event.key === "k") step(-1);
      else if (event.key === "x" && id) known.current.toggle(id);
      else if (event.key === "c") known.current.compare();
      else if (event.key === "p") press(row, ["toggle"]);
      else if (event.key === ".") press(row, ["more"]);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
