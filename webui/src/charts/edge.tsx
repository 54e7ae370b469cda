/** The lower edge of a chart: dragging it, or the arrow keys on it, changes the height of all charts. */

import { type PointerEvent, useSyncExternalStore } from "react";

const KEY = "chart height";
const [LEAST, USUAL, MOST, STEP] = [110, 168, 640, 20];
const watchers = new Set<() => void>();

const within = (height: number) => Math.round(Math.min(MOST, Math.max(LEAST, height)));
const storedHeight = () => within(Number(localStorage.getItem(KEY)) || USUAL);

export const useHeight = (): [number, (height: number) => void] => [useSyncExternalStore(subscribe, storedHeight), setHeight];

function subscribe(watcher: () => void) {
  watchers.add(watcher);
  return () => {
    watchers.delete(watcher);
  };
}

function setHeight(height: number) {
  localStorage.setItem(KEY, String(within(height)));
  watchers.forEach((tell) => tell());
}

export function Edge({ height, onChange }: { height: number; onChange: (height: number) => void }) {
  const begin = (event: PointerEvent<HTMLElement>) => {
    const { currentTarget: edge, pointerId, clientY: from } = event;
    edge.setPointerCapture(pointerId);
    const move = (now: globalThis.PointerEvent) => onChange(height + now.clientY - from);
    edge.addEventListener("pointermove", move);
    edge.addEventListener("pointerup", () => edge.removeEventListener("pointermove", move), { once: true });
  };
  return (
    <hr
      className="edge"
      aria-orientation="horizontal"
      aria-label="Height of charts"
      aria-valuenow={height}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      tabIndex={0}
      onPointerDown={begin}
      onDoubleClick={() => onChange(USUAL)}
      onKeyDown={(event) => {
        const by = event.key === "ArrowDown" ? STEP : event.key === "ArrowUp" ? -STEP : 0;
        if (!by) return;
        event.preventDefault();
        onChange(height + by);
      }}
    />
  );
}
