/** The lines in view and some around them: the rest of the window is mounted as one scrolls to it. */

import { type KeyboardEvent, type MouseEvent, type UIEvent, useCallback, useLayoutEffect, useMemo, useRef, useState } from "react";

import { LineRow } from "./line";
import type { Reading } from "./reading";
import { rowOf, rowsOf } from "./window";

const MOUNTED = 200;
const STEP = 60;
const NEAR_PX = 700;
const AHEAD = 250;

interface Props {
  reading: Reading;
  collapse: boolean;
  times: boolean;
  wrap: boolean;
  /** Columns that the log has. */
  columns: { rank: boolean; level: boolean };
  part: string;
  chosen: number | null;
  opened: { id: number; text: string } | null;
  onChoose: (id: number) => void;
  onKey: (key: string) => boolean;
  onTop: (number: number) => void;
}

export function LineList({ reading, collapse, times, wrap, columns, part, chosen, opened, onChoose, onKey, onTop }: Props) {
  const rows = useMemo(() => rowsOf(reading.lines, collapse), [reading.lines, collapse]);
  const box = useRef<HTMLDivElement>(null);
  const [firstId, setFirstId] = useState(0);
  /** The line that stays where it is while lines come and go around it; how far it is from the top. */
  const anchor = useRef<{ id: number; top: number } | null>(null);
  /** Where the list was scrolled to when last looked at: what is above that now was moved by the reader. */
  const lastTop = useRef(0);
  const { following, goal, grow, setFollowing } = reading;
  const last = Math.max(rows.length - MOUNTED, 0);
  const first = following ? last : Math.min(rowOf(rows, firstId), last);
  const mounted = rows.slice(first, first + MOUNTED);

  const note = useCallback(() => {
    const element = box.current!;
    const children = [...element.children] as HTMLElement[];
    const shown = children.find((child) => child.offsetTop + child.offsetHeight > element.scrollTop);
    anchor.current = shown ? { id: Number(shown.dataset.id), top: shown.offsetTop - element.scrollTop } : null;
    const number = rows.find((row) => row.line.id === anchor.current?.id)?.line.number;
    if (number) onTop(number);
  }, [rows, onTop]);

  /** Stop following where the reader is: new lines come many times a second, and must not win against a slow wheel. */
  const stay = () => {
    setFirstId(mounted[0]?.line.id ?? 0);
    note();
    setFollowing(false);
  };

  // Before anybody can scroll: what is noted of a place between two windows would win against the goal.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new goal moves the window
  useLayoutEffect(() => {
    if (goal) setFirstId(rows[Math.max(rowOf(rows, goal.id) - MOUNTED / 2, 0)]?.line.id ?? 0);
    anchor.current = null;
  }, [goal]);

  useLayoutEffect(() => {
    const element = box.current!;
    if (following) {
      if (isMovedUp(element, lastTop.current)) stay();
      else element.scrollTop = element.scrollHeight;
    } else if (anchor.current) {
      const child = element.querySelector<HTMLElement>(`[data-id="${anchor.current.id}"]`);
      if (child) element.scrollTop = child.offsetTop - anchor.current.top;
    } else if (goal) {
      const row = rows[rowOf(rows, goal.id)];
      const child = row && element.querySelector<HTMLElement>(`[data-id="${row.line.id}"]`);
      if (child) {
        element.scrollTop = child.offsetTop - element.clientHeight / 3;
        note();
      }
    }
    lastTop.current = element.scrollTop;
  });

  const onScroll = (event: UIEvent<HTMLDivElement>) => {
    const element = event.currentTarget;
    const below = leftBelow(element);
    const [up, down] = [isMovedUp(element, lastTop.current), element.scrollTop > lastTop.current];
    lastTop.current = element.scrollTop;
    if (following) return up ? stay() : note();
    if (down && below < 3 && reading.atEnd && first === last) return setFollowing(true);
    note();
    if (element.scrollTop < NEAR_PX && first > 0) setFirstId(rows[Math.max(first - STEP, 0)]!.line.id);
    else if (below < NEAR_PX && first < last) setFirstId(rows[Math.min(first + STEP, last)]!.line.id);
    if (first < AHEAD) grow(true);
    if (rows.length - first - MOUNTED < AHEAD) grow(false);
  };

  const onClick = (event: MouseEvent) => {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-id]");
    if (row && window.getSelection()?.isCollapsed !== false) onChoose(Number(row.dataset.id));
  };

  const move = (by: number) => {
    const from = chosen ?? anchor.current?.id ?? 0;
    const next = rows[Math.min(Math.max(rowOf(rows, from) + (chosen === null ? 0 : by), 0), rows.length - 1)];
    if (!next) return;
    setFollowing(false);
    onChoose(next.line.id);
    const child = box.current!.querySelector<HTMLElement>(`[data-id="${next.line.id}"]`);
    child?.scrollIntoView({ block: "nearest" });
    note();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (by) move(by);
    else if (!onKey(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      ref={box}
      className={`log${wrap ? "" : " unwrapped"}`}
      role="listbox"
      aria-label="Log lines"
      tabIndex={0}
      aria-activedescendant={chosen === null ? undefined : `line-${chosen}`}
      onScroll={onScroll}
      onClick={onClick}
      onKeyDown={onKeyDown}
    >
      {mounted.map((row) => (
        <LineRow
          key={row.line.id}
          row={row}
          times={times}
          ranked={columns.rank}
          levelled={columns.level}
          part={part}
          chosen={row.line.id === chosen}
          opened={opened?.id === row.line.id ? opened.text : undefined}
        />
      ))}
    </div>
  );
}

function leftBelow(element: HTMLElement): number {
  return element.scrollHeight - element.scrollTop - element.clientHeight;
}

/** Whether the reader has scrolled up. A list that became shorter stands at its end, and that is none of his doing. */
function isMovedUp(element: HTMLElement, lastTop: number): boolean {
  return element.scrollTop < lastTop - 2 && leftBelow(element) > 2;
}
