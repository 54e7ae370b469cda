/** The one table: a real <table> that renders only the rows in view. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight } from "lucide-react";
import { type CSSProperties, type ReactNode, useEffect, useMemo, useRef, useState } from "react";

import { useDensity } from "../../shell/look";
import { useNarrow } from "../media";
import type { MenuItems } from "../menu";
import { useRoving } from "../roving";
import { Head } from "./head";
import { useRowKeys } from "./keys";
import { grouped, type Item, ordered } from "./order";
import { useHiddenRight } from "./right";
import { type Does, type Frame, Gap, pinnedAt, TableRow } from "./row";
import { stretches, useShare } from "./share";
import { useSlots } from "./slots";
import type { Column, ColumnView, Sort, Source } from "./types";
import { below, chosen, useKeptView } from "./view";
import { fitted, useRoom, wishOf } from "./widths";
import { many } from "../../parts/format";

const ROW = { compact: 28, normal: 34, roomy: 42 };
const ROW_NARROW = 44;
const CHOOSE = 38;
const ACT = 44;
const GROWS_NARROW = 84;
const MOST_NARROW = 104;
/** Up to this many rows, the table renders all of them. */
const PLAIN = 80;
const BEYOND = 8;

export interface TableProps<T> {
  name: string;
  rows: T[] | Source<T>;
  id: (row: T) => string | number;
  columns: Column<T>[];
  /** Menu items of a row; their `keys` work on the row in focus. */
  actions?: (row: T) => MenuItems;
  /** At most one button, before the menu. */
  act?: (row: T) => ReactNode;
  /** Width of the actions column, in pixels. */
  actWidth?: number;
  open?: string | number | null;
  onOpen?: (row: T) => void;
  selected?: ReadonlySet<string | number>;
  onSelect?: (ids: Set<string | number>) => void;
  /** Handler of the check box in the head; by default it selects all loaded rows. */
  onAll?: () => void;
  /** Name of a row, for its check box and its menu. */
  called?: (row: T) => string;
  sorts?: readonly Sort[];
  onSort?: (sorts: Sort[]) => void;
  /** Columns that the data source can sort by. */
  sortable?: (id: string) => boolean;
  group?: (row: T) => string;
  groupHead?: (key: string, rows: T[]) => ReactNode;
  /** Key under which the browser stores column widths and choice. */
  store?: string;
  view?: ColumnView;
  empty?: ReactNode;
  /** Fills the height of the window instead of fitting its rows. */
  fill?: boolean;
  onPoint?: (row: T | null) => void;
  className?: (row: T) => string;
}

/** Each is one Tab stop. */
const HEADS = { within: "thead" };
/** Left and right change the width of a column, so up and down lead to that of the next one. */
const GRIPS = { within: "thead", controls: "[role=separator]", rows: "th" };
const ROWS = { within: "tbody", rows: "tr" };
const NO_SORTS: readonly Sort[] = [];
const NO_COLUMNS: never[] = [];
const NO_ROWS: number[] = [];
const isSource = <T,>(rows: T[] | Source<T>): rows is Source<T> => !Array.isArray(rows);

export function Table<T>(props: TableProps<T>) {
  const { rows, columns, id, empty, fill, selected, onSelect, actions, act } = props;
  const box = useRef<HTMLDivElement>(null);
  const [density] = useDensity();
  const narrow = useNarrow();
  const own = useKeptView(props.store);
  const view = props.view ?? own;
  const [ownSorts, setSorts] = useState<readonly Sort[]>(NO_SORTS);
  const sorts = props.sorts ?? ownSorts;
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(() => chosen(columns, view.shown, narrow), [columns, view.shown, narrow]);
  const under = useMemo(() => (narrow ? below(columns, view.shown) : NO_COLUMNS), [columns, view.shown, narrow]);
  const source = isSource(rows) ? rows : null;
  const items = useMemo(
    () => (isSource(rows) ? [] : grouped(props.onSort ? rows : ordered(rows, columns, sorts), props.group, folded)),
    [rows, columns, sorts, props.group, folded, props.onSort],
  );
  const count = source?.count ?? items.length;
  const height = narrow ? ROW_NARROW : ROW[density];
  const virtual = count > PLAIN;
  const window = useVirtualizer({
    count: virtual ? count : 0,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: BEYOND,
    initialRect: { width: 0, height: 800 },
  });
  const parts = virtual ? window.getVirtualItems() : null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the density changes the height of rows
  useEffect(() => window.measure(), [height]);
  const [from, to] = parts ? [parts[0]?.index ?? 0, (parts.at(-1)?.index ?? -1) + 1] : [0, count];
  useEffect(() => source?.want(from, to), [source?.want, from, to]);
  const seen = window.range ? ([window.range.startIndex, window.range.endIndex] as const) : ([from, to] as const);
  const share = useShare(from, to, seen, virtual && window.isScrolling);
  const at = (index: number): Item<T> | undefined => {
    if (!source) return items[index];
    const row = source.at(index);
    return row === undefined ? undefined : { kind: "row", row, index };
  };
  const rowAt = (index: number): T | undefined => {
    if (source) return source.at(index);
    const row = items.find((item) => item.kind === "row" && item.index === index);
    return row?.kind === "row" ? row.row : undefined;
  };
  const last = useRef<number | null>(null);
  const choose = (index: number, upTo: boolean) => {
    const row = rowAt(index);
    if (!row || !onSelect) return;
    const next = new Set(selected);
    const begin = upTo && last.current !== null ? Math.min(last.current, index) : index;
    const end = upTo && last.current !== null ? Math.max(last.current, index) : index;
    const on = upTo || !next.has(id(row));
    for (let place = begin; place <= end; place += 1) {
      const row = rowAt(place);
      if (row && on) next.add(id(row));
      else if (row) next.delete(id(row));
    }
    last.current = index;
    onSelect(next);
  };
  useRowKeys(box, {
    choose: onSelect && choose,
    actions: (index) => {
      const row = rowAt(index);
      return row && actions ? actions(row) : [];
    },
  });
  const there = count > 0 || !empty;
  useRoving(box, { ...HEADS, there });
  useRoving(box, { ...GRIPS, there });
  useRoving(box, { ...ROWS, there });
  const hidden = useHiddenRight(box, shown.length);
  const actWidth = actions || act ? (props.actWidth ?? ACT) : 0;
  const named = shown.findIndex((column) => column.name);
  const lead = onSelect ? CHOOSE : 0;
  const room = useRoom(box, there);
  const wide = useMemo(() => {
    const wishes = shown.map((column) => wishOf(column, view.widths[column.id]));
    return new Map(fitted(wishes, room - lead - actWidth).map((width, place) => [shown[place]!.id, width]));
  }, [shown, view.widths, room, lead, actWidth]);
  const width = (column: Column<T>) => {
    if (narrow) return column.name || column.width === undefined ? GROWS_NARROW : Math.min(column.width, MOST_NARROW);
    return wide.get(column.id)!;
  };
  const grows = (column: Column<T>) => narrow && (column.name || column.width === undefined);
  const pinned = narrow ? -1 : named;
  const left = (place: number) => lead + shown.slice(0, place).reduce((sum, column) => sum + width(column), 0);
  const pin = (place: number): CSSProperties | undefined => (place <= pinned ? pinnedAt(left(place)) : undefined);
  const pinClass = (place: number) => (place > pinned ? "" : place === pinned ? "pin pin-end" : "pin");
  const [chooses, offers] = [Boolean(onSelect), Boolean(actions)];
  // biome-ignore lint/correctness/useExhaustiveDependencies: the offsets of pinned columns depend on these
  const frame = useMemo(
    (): Frame<T> => ({
      shown,
      under,
      chooses,
      offers,
      pins: shown.map((_, place) => pin(place)),
      classes: shown.map(
        (column, place) =>
          `${column.num ? "num" : ""} ${column.name ? "name" : ""} ${column.wrap ? "wrap" : ""} ${pinClass(place)} ${place === 0 && !chooses ? "first" : ""}`,
      ),
    }),
    [shown, under, chooses, offers, narrow, wide],
  );
  const does = useRef<Does<T>>(null!);
  does.current = { choose, actions, onOpen: props.onOpen, onPoint: props.onPoint };
  const across = shown.length + (chooses ? 1 : 0) + (actWidth ? 1 : 0);
  const all = shown.reduce((sum, column) => sum + width(column), lead + actWidth);
  const spacer = (rowsAway: number) => rowsAway > 0 && <tr aria-hidden style={{ height: rowsAway * height }} />;
  const everything = () =>
    props.onAll
      ? props.onAll()
      : onSelect?.(new Set(selected?.size ? [] : items.flatMap((item) => (item.kind === "row" ? [id(item.row)] : []))));
  const isDrawn = (index: number) => share?.has(index) !== false;
  const drawn = virtual ? Array.from({ length: to - from }, (_, offset) => from + offset).filter(isDrawn) : NO_ROWS;
  const ids = drawn.flatMap((index) => {
    const item = at(index);
    return item?.kind === "row" ? [id(item.row)] : [];
  });
  const slots = useSlots(box, ids);
  if (!there) return <>{empty}</>;
  return (
    <>
      <div
        ref={box}
        className={`tw ${hidden ? "more-right" : ""}`}
        style={fill ? { height: "calc(100vh - var(--above, 210px))", minHeight: 240 } : virtual ? { maxHeight: "72vh" } : undefined}
        tabIndex={0}
        role="region"
        aria-label={`${props.name}, scrollable`}
      >
        <table className="fixed" aria-label={props.name} aria-rowcount={virtual ? count + 1 : undefined} style={{ minWidth: all }}>
          <colgroup>
            {onSelect && <col style={{ width: CHOOSE }} />}
            {shown.map((column) => (
              <col key={column.id} style={grows(column) ? undefined : { width: width(column) }} />
            ))}
            {actWidth > 0 && <col style={{ width: actWidth }} />}
          </colgroup>
          <thead>
            <tr>
              {onSelect && (
                <th scope="col" className="pin choose" style={pinnedAt(0)}>
                  <input
                    type="checkbox"
                    className="box"
                    aria-label="Select all that match"
                    checked={Boolean(selected?.size)}
                    ref={(element) => {
                      if (element) element.indeterminate = Boolean(selected?.size) && selected!.size < count;
                    }}
                    onChange={everything}
                  />
                </th>
              )}
              {shown.map((column, place) => (
                <Head
                  key={column.id}
                  column={column}
                  pin={pin(place)}
                  className={`${pinClass(place)} ${place === 0 && !onSelect ? "first" : ""}`}
                  sorts={sorts}
                  sortable={column.sort !== false && (props.onSort ? (props.sortable?.(column.id) ?? true) : column.value !== undefined)}
                  width={width(column)}
                  onSort={(next) => (props.onSort ? props.onSort(next) : setSorts(next))}
                  onResize={props.store || props.view ? (wide) => view.setWidth(column.id, wide) : undefined}
                />
              ))}
              {actWidth > 0 && (
                <th scope="col" className="act">
                  <span className="vh">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {spacer(from)}
            {stretches(from, to, (index) => at(index) !== undefined && isDrawn(index)).map(({ from: begin, rows: many }, place) => {
              if (many > 0) return <Gap key={`gap ${place}`} height={many * height} columns={across} />;
              const item = at(begin)!;
              if (item.kind === "group")
                return (
                  <tr key={`group ${item.key}`} className="grp">
                    <td colSpan={across}>
                      <button
                        type="button"
                        aria-expanded={!item.folded}
                        onClick={() => {
                          const next = new Set(folded);
                          if (!next.delete(item.key)) next.add(item.key);
                          setFolded(next);
                        }}
                      >
                        {item.folded ? <ChevronRight className="s" /> : <ChevronDown className="s" />}
                        {props.groupHead ? props.groupHead(item.key, item.rows) : <b>{item.key || "none"}</b>}
                      </button>
                    </td>
                  </tr>
                );
              const { row } = item;
              const key = id(row);
              const isChosen = selected?.has(key) ?? false;
              const isOpen = String(key) === String(props.open ?? "");
              return (
                <TableRow
                  key={slots.has(key) ? `slot ${slots.get(key)}` : key}
                  row={row}
                  id={key}
                  index={item.index}
                  ariaIndex={virtual ? begin + 2 : undefined}
                  className={`${isChosen ? "sel" : ""} ${isOpen ? "here" : ""} ${props.className?.(row) ?? ""}`}
                  isChosen={isChosen}
                  called={props.called?.(row) ?? String(key)}
                  frame={frame}
                  act={act}
                  does={does}
                />
              );
            })}
            {spacer(count - to)}
          </tbody>
        </table>
      </div>
      {hidden > 0 && (
        <div className="below" aria-hidden="true">
          {many(hidden, "more column")} at the right
        </div>
      )}
    </>
  );
}
