/** A table of very many rows, of which only those in view are there. */

import {
  type KeyboardEvent,
  type MouseEvent,
  type PointerEvent,
  type ReactNode,
  type UIEvent,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

import type { Column, Row } from "./columns";

export type Sort = [id: string, descending: boolean];
export const HEIGHTS: Record<string, number> = { compact: 28, roomy: 40, tall: 60 };
const BEYOND = 8;
const LEAST = 50;
const STEP = 16;
const CHOOSE = 34;

export interface Choice {
  chosen: Set<number>;
  toggle: (id: number) => void;
  /** The header's box: all, or none. */
  all: () => void;
}

export function Grid({
  columns,
  widths,
  pinned,
  sorts,
  total,
  rowAt,
  height,
  choice,
  actions,
  onSort,
  onResize,
  onView,
}: {
  columns: Column[];
  widths: Record<string, number>;
  /** How many of the first columns stay when the others move. */
  pinned: number;
  sorts: Sort[];
  total: number;
  rowAt: (index: number) => Row | undefined;
  height: number;
  choice: Choice;
  actions: (row: Row) => ReactNode;
  onSort: (sorts: Sort[]) => void;
  onResize: (id: string, width: number) => void;
  onView: (first: number, last: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [[top, seen], setView] = useState<[number, number]>([0, 600]);
  const look = (element: HTMLElement) => setView([element.scrollTop, element.clientHeight]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `look` does the same whenever it was made
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => box.current && look(box.current));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / height) - BEYOND);
  const last = Math.min(total, Math.ceil((top + seen) / height) + BEYOND);
  useEffect(() => onView(first, last), [first, last, onView]);
  const width = (one: Column) => widths[one.id] ?? one.width;
  const left = columns.map((_, at) => CHOOSE + columns.slice(0, at).reduce((sum, one) => sum + width(one), 0));
  const pin = (at: number) => (at < pinned ? { position: "sticky" as const, left: left[at], zIndex: 1 } : undefined);
  const sortBy = (event: MouseEvent, id: string) => {
    const now = sorts.find(([one]) => one === id);
    const next: Sort = [id, now ? !now[1] : false];
    onSort(event.shiftKey ? [...sorts.filter(([one]) => one !== id), next] : [next]);
  };
  const spacer = (rows: number) => rows > 0 && <tr aria-hidden style={{ height: rows * height }} />;
  return (
    <div
      className="grid scroll"
      ref={box}
      onScroll={(event: UIEvent<HTMLDivElement>) => look(event.currentTarget)}
      tabIndex={0}
      role="region"
      aria-label="Experiments, scrollable"
    >
      <table
        aria-label="Experiments"
        aria-rowcount={total + 1}
        style={{ width: (left.at(-1) ?? CHOOSE) + (columns.length ? width(columns.at(-1)!) : 0) + 60 }}
      >
        <colgroup>
          <col style={{ width: CHOOSE }} />
          {columns.map((one) => (
            <col key={one.id} style={{ width: width(one) }} />
          ))}
          <col style={{ width: 60 }} />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th className="pin" style={{ left: 0 }}>
              <input type="checkbox" aria-label="Choose all that fit" checked={choice.chosen.size > 0} onChange={choice.all} />
            </th>
            {columns.map((one, at) => (
              <Head key={one.id} one={one} at={at} pin={pin(at)} sorts={sorts} width={width(one)} onSort={sortBy} onResize={onResize} />
            ))}
            <th>
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {spacer(first)}
          {Array.from({ length: last - first }, (_, at) => first + at).map((index) => {
            const row = rowAt(index);
            return (
              <tr
                key={row?.experiment.id ?? `at${index}`}
                aria-rowindex={index + 2}
                style={{ height }}
                data-row={index}
                data-id={row?.experiment.id}
              >
                <td className="pin" style={{ left: 0 }}>
                  {row && (
                    <input
                      type="checkbox"
                      aria-label={`Choose experiment ${row.experiment.id}`}
                      checked={choice.chosen.has(row.experiment.id)}
                      onChange={() => choice.toggle(row.experiment.id)}
                    />
                  )}
                </td>
                {columns.map((one, column) => (
                  <td key={one.id} className={`${one.kind === "NUMBER" ? "num" : ""} ${column < pinned ? "pin" : ""}`} style={pin(column)}>
                    <div className="cell">{row ? one.cell(row) : <span className="ghost" />}</div>
                  </td>
                ))}
                <td>{row && actions(row)}</td>
              </tr>
            );
          })}
          {spacer(total - last)}
        </tbody>
      </table>
    </div>
  );
}

function Head({
  one,
  at,
  pin,
  sorts,
  width,
  onSort,
  onResize,
}: {
  one: Column;
  at: number;
  pin?: object;
  sorts: Sort[];
  width: number;
  onSort: (event: MouseEvent, id: string) => void;
  onResize: (id: string, width: number) => void;
}) {
  const place = sorts.findIndex(([id]) => id === one.id);
  const sorted = sorts[place];
  return (
    <th
      className={`${one.kind === "NUMBER" ? "num" : ""} ${pin ? "pin" : ""}`}
      style={pin}
      aria-colindex={at + 2}
      aria-sort={sorted ? (sorted[1] ? "descending" : "ascending") : undefined}
    >
      <button type="button" onClick={(event) => onSort(event, one.id)} title={`${one.id}; with shift: sort by this too`}>
        {one.label}
        <span aria-hidden>
          {sorted ? (sorted[1] ? " ↓" : " ↑") : ""}
          {sorts.length > 1 && sorted ? place + 1 : ""}
        </span>
      </button>
      <Handle one={one} width={width} onResize={onResize} />
    </th>
  );
}

/** Drags, or moves by arrow keys. */
function Handle({ one, width, onResize }: { one: Column; width: number; onResize: (id: string, width: number) => void }) {
  const drag = (event: PointerEvent<HTMLSpanElement>) => {
    event.preventDefault();
    const from = event.clientX;
    const handle = event.currentTarget;
    handle.setPointerCapture(event.pointerId);
    const move = (moved: globalThis.PointerEvent) => onResize(one.id, Math.max(LEAST, width + moved.clientX - from));
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (step) onResize(one.id, Math.max(LEAST, width + step));
  };
  return (
    <span
      className="handle"
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${one.label}`}
      aria-valuenow={Math.round(width)}
      aria-valuemin={LEAST}
      aria-valuemax={1000}
      tabIndex={0}
      onPointerDown={drag}
      onKeyDown={press}
    />
  );
}
