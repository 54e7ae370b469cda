import { ArrowDown, ArrowUp } from "lucide-react";
import type { CSSProperties, KeyboardEvent, PointerEvent } from "react";

import { sortedBy } from "./order";
import type { Column, Sort } from "./types";

const LEAST = 50;
const MOST = 1000;
const STEP = 16;

export function Head<T>({
  column,
  pin,
  className = "",
  sorts,
  sortable,
  width,
  onSort,
  onResize,
}: {
  column: Column<T>;
  pin?: CSSProperties;
  className?: string;
  sorts: readonly Sort[];
  sortable: boolean;
  width: number;
  onSort: (sorts: Sort[]) => void;
  onResize?: (width: number) => void;
}) {
  const place = sorts.findIndex(([id]) => id === column.id);
  const sorted = sorts[place];
  const Arrow = sorted?.[1] ? ArrowDown : ArrowUp;
  return (
    <th
      scope="col"
      className={`${column.num ? "num" : ""} ${className}`}
      style={pin}
      aria-sort={sorted ? (sorted[1] ? "descending" : "ascending") : undefined}
      data-column={column.id}
    >
      {sortable ? (
        <button
          type="button"
          className="sort"
          title={`Sort by ${column.head}; with Shift by this too`}
          onClick={(event) => onSort(sortedBy(sorts, column.id, event.shiftKey))}
        >
          <span>{column.head}</span>
          {sorted && <Arrow />}
          {sorts.length > 1 && sorted ? place + 1 : ""}
        </button>
      ) : (
        column.head
      )}
      {onResize && <Grip name={column.head} width={width} onResize={onResize} />}
    </th>
  );
}

/** Resizes a column by dragging or with the arrow keys. */
function Grip({ name, width, onResize }: { name: string; width: number; onResize: (width: number) => void }) {
  const within = (wanted: number) => onResize(Math.round(Math.min(MOST, Math.max(LEAST, wanted))));
  const drag = (event: PointerEvent<HTMLSpanElement>) => {
    event.preventDefault();
    const from = event.clientX;
    const grip = event.currentTarget;
    const began = grip.parentElement?.offsetWidth ?? width;
    grip.setPointerCapture(event.pointerId);
    const move = (moved: globalThis.PointerEvent) => within(began + moved.clientX - from);
    grip.addEventListener("pointermove", move);
    grip.addEventListener("pointerup", () => grip.removeEventListener("pointermove", move), { once: true });
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (step) within(width + step);
  };
  return (
    <span
      className="grip"
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${name}`}
      aria-valuenow={Math.round(width)}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      // For the first one; the others are reached with up and down.
      tabIndex={0}
      onPointerDown={drag}
      onKeyDown={press}
    />
  );
}
