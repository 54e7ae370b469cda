/** Renders the lines in view, out of the window of the log that the page holds. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronRight } from "lucide-react";
import { type KeyboardEvent, type MouseEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { type Cause, follows, marksOf } from "./cause";
import { LineRow } from "./line";
import type { Reading } from "./reading";
import { type Row, rowOf, rowsOf } from "./window";
import { many } from "../format";

const LINE_PX = 19;
const FOLD_PX = 32;
const BESIDE = 20;
/** How many rows before an end of the window the next lines are requested. */
const AHEAD = 150;
const END_PX = 4;

export interface View {
  first: number;
  last: number;
}

interface Props {
  reading: Reading;
  cause: Cause | null;
  fold: boolean;
  collapse: boolean;
  stamps: boolean;
  wrap: boolean;
  ranked: boolean;
  part: string;
  chosen: number | null;
  opened: { id: number; text: string } | null;
  onChoose: (id: number) => void;
  onKey: (key: string) => boolean;
  onView: (view: View) => void;
}

const linesOf = (row: Row) => (row.kind === "line" ? [row.line] : row.lines);

export function LineList({ reading, cause, fold, collapse, stamps, wrap, ranked, part, chosen, opened, onChoose, onKey, onView }: Props) {
  const { lines, following, goal, grow, setFollowing, atEnd } = reading;
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const rows = useMemo(
    () => rowsOf(lines, { collapse, open, folds: fold && cause ? (line) => follows(line, cause) && line.id !== chosen : undefined }),
    [lines, collapse, open, fold, cause, chosen],
  );
  const marks = useMemo(() => marksOf(lines, cause), [lines, cause]);
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (at) => (rows[at]?.kind === "fold" ? FOLD_PX : LINE_PX),
    getItemKey: (at) => rows[at]?.key ?? at,
    overscan: BESIDE,
    // Keeps the view in place while lines are added above it.
    anchorTo: "end",
    paddingStart: 6,
    paddingEnd: 6,
  });

  // A change of layout invalidates the measured heights.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the heights depend on these
  useLayoutEffect(() => virtual.measure(), [wrap, stamps, ranked]);

  /** The user has scrolled, so the view stays there; until then it stays at the goal. */
  const byHand = useRef(false);
  const isShort = virtual.getTotalSize() <= (virtual.scrollRect?.height ?? 0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new goal overrides earlier scrolling
  useLayoutEffect(() => {
    byHand.current = false;
  }, [goal]);
  // After every render, since measured heights and lines added above move the goal.
  useLayoutEffect(() => {
    if (!goal || !rows.length || (byHand.current && !following)) return;
    const at = following ? rows.length - 1 : rowOf(rows, goal.id);
    const offset = virtual.getOffsetForIndex(at, following ? "end" : "center")?.[0];
    const element = box.current!;
    if (offset !== undefined && Math.abs(element.scrollTop - offset) > 1) element.scrollTop = offset;
  });

  const { startIndex = 0, endIndex = 0 } = virtual.range ?? {};
  const first = rows[startIndex] ? linesOf(rows[startIndex]!)[0]!.number : 0;
  const last = rows[endIndex] ? (linesOf(rows[endIndex]!).at(-1)?.number ?? 0) : 0;
  useEffect(() => onView({ first, last }), [first, last, onView]);

  const enough = () => {
    if (startIndex < AHEAD) grow(true);
    if (endIndex > rows.length - AHEAD) grow(false);
  };
  // If all lines fit into the view, there is no scrolling that would request more.
  const isBusy = reading.busy;
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once per answer
  useEffect(() => {
    if (isShort && !isBusy && rows.length) enough();
  }, [isShort, isBusy, rows.length]);

  const take = () => {
    byHand.current = true;
  };
  const up = () => {
    take();
    setFollowing(false);
  };
  const onScroll = () => {
    if (!byHand.current) return;
    enough();
    const left = leftBelow(box.current!);
    if (following && left > END_PX) setFollowing(false);
    if (!following && atEnd && left <= END_PX && virtual.scrollDirection === "forward") setFollowing(true);
  };

  const onClick = (event: MouseEvent) => {
    const target = event.target as HTMLElement;
    const folded = target.closest<HTMLElement>("[data-fold]");
    if (folded) return setOpen(new Set([...open, Number(folded.dataset.fold)]));
    const row = target.closest<HTMLElement>("[data-id]");
    if (row && window.getSelection()?.isCollapsed !== false) onChoose(Number(row.dataset.id));
  };

  const move = (by: number) => {
    const at = chosen === null ? startIndex : rowOf(rows, chosen) + by;
    const next = Math.min(Math.max(at, 0), rows.length - 1);
    const row = rows[next];
    if (!row) return;
    up();
    if (row.kind === "fold") setOpen(new Set([...open, row.lines[0]!.id]));
    onChoose(linesOf(row)[0]!.id);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (by) move(by);
    else if (event.key === "PageUp") return up();
    else if (event.key === "PageDown" || event.key === " ") return take();
    else if (!onKey(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      ref={box}
      className={`log${wrap ? " wrapped" : ""}`}
      role="listbox"
      aria-label="Log lines"
      tabIndex={0}
      aria-activedescendant={chosen === null ? undefined : `line-${chosen}`}
      onScroll={onScroll}
      onWheel={(event) => (event.deltaY < 0 ? up() : take())}
      onTouchMove={take}
      onPointerDown={take}
      onClick={onClick}
      onKeyDown={onKeyDown}
    >
      <div className="lines" role="presentation" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          return (
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              role="presentation"
              className="at"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {row.kind === "fold" ? (
                <Fold row={row} cause={cause!} />
              ) : (
                <LineRow
                  line={row.line}
                  times={row.times}
                  marked={marks.get(row.line.id)}
                  stamps={stamps}
                  ranked={ranked}
                  part={part}
                  chosen={row.line.id === chosen}
                  opened={opened?.id === row.line.id ? opened.text : undefined}
                />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Fold({ row, cause }: { row: Row & { kind: "fold" }; cause: Cause }) {
  const ranks = new Set(row.lines.map((line) => line.rankId)).size;
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus; arrow keys open this row
    <div className="fold-row" role="option" aria-selected={false} data-fold={row.lines[0]!.id}>
      <ChevronRight className="s" />
      {many(row.lines.length, "line")} of {ranks === 1 ? `rank ${row.lines[0]!.rankId}` : `${ranks} ranks`} that follow from{" "}
      {cause.rankId === null ? "it" : `rank ${cause.rankId}`}
    </div>
  );
}

const leftBelow = (element: HTMLElement) => element.scrollHeight - element.scrollTop - element.clientHeight;
