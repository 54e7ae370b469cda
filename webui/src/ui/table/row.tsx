/** One row of the table. It renders when its own data changes, not when the table scrolls. */

import { type CSSProperties, Fragment, memo, type ReactNode } from "react";

import { Menu, type MenuItems } from "../menu";
import type { Column } from "./types";

/** What all rows of a table share. */
export interface Frame<T> {
  shown: Column<T>[];
  /** On telephones: columns shown below the name. */
  under: Column<T>[];
  classes: string[];
  pins: (CSSProperties | undefined)[];
  chooses: boolean;
  offers: boolean;
}

/** Actions of rows; looked up when called, so that new functions do not re-render the rows. */
export interface Does<T> {
  choose: (index: number, upTo: boolean) => void;
  actions?: (row: T) => MenuItems;
  onOpen?: (row: T) => void;
  onPoint?: (row: T | null) => void;
}

interface RowProps<T> {
  row: T;
  id: string | number;
  /** Index among the rows, and among everything that the table shows. */
  index: number;
  ariaIndex?: number;
  className: string;
  isChosen: boolean;
  called: string;
  frame: Frame<T>;
  act?: (row: T) => ReactNode;
  does: { readonly current: Does<T> };
}

function Row<T>({ row, id, index, ariaIndex, className, isChosen, called, frame, act, does }: RowProps<T>) {
  const { shown, classes, pins, under, chooses, offers } = frame;
  return (
    <tr
      data-row={index}
      data-id={id}
      aria-rowindex={ariaIndex}
      className={className}
      onMouseEnter={() => does.current.onPoint?.(row)}
      onMouseLeave={() => does.current.onPoint?.(null)}
      onClick={(event) => !(event.target as Element).closest("a, button, input, select, label") && does.current.onOpen?.(row)}
    >
      {chooses && (
        <td className="pin choose" style={PINNED_FIRST}>
          <input
            type="checkbox"
            className="box"
            aria-label={`Choose ${called}`}
            checked={isChosen}
            onChange={() => does.current.choose(index, false)}
            onClick={(event) => {
              if (!event.shiftKey) return;
              event.preventDefault();
              does.current.choose(index, true);
            }}
          />
        </td>
      )}
      {shown.map((column, place) => {
        const heat = column.heat?.(row);
        return (
          <td
            key={column.id}
            className={heat ? `${classes[place]} heat` : classes[place]}
            style={heat ? { ...pins[place], ...heated(heat) } : pins[place]}
            title={column.title?.(row)}
          >
            {column.cell(row)}
            {column.name && under.length > 0 && (
              <span className="under">
                {under.map((other) => (
                  <Fragment key={other.id}>{other.cell(row)}</Fragment>
                ))}
              </span>
            )}
          </td>
        );
      })}
      {(offers || act) && (
        <td className="act">
          {/* The key keeps the state of the row that used these elements before from carrying over. */}
          {act && <Fragment key={id}>{act(row)}</Fragment>}
          {offers && <Menu about={id} label={`Actions of ${called}`} action="more" items={() => does.current.actions?.(row) ?? []} />}
        </td>
      )}
    </tr>
  );
}

/** Left offset at which a cell sticks when the table scrolls sideways. */
export const pinnedAt = (left: number) => ({ "--left": `${left}px` }) as CSSProperties;
const PINNED_FIRST = pinnedAt(0);

const heated = (heat: number) => ({ "--heat": `color-mix(in srgb, var(--d5) ${Math.round(26 * heat)}%, transparent)` }) as CSSProperties;

export const TableRow = memo(Row) as typeof Row;

/** Rows that are not drawn or not loaded yet, drawn as bars by the style sheet: one element for all of them. */
export const Gap = memo(({ height, columns }: { height: number; columns: number }) => (
  <tr aria-hidden className="gap" style={{ height }}>
    <td colSpan={columns} />
  </tr>
));
