/** One row of the table. It is drawn anew when something of its own has changed, not when the table is scrolled. */

import { type CSSProperties, Fragment, memo, type ReactNode } from "react";

import { Menu, type MenuItems } from "../menu";
import type { Column } from "./types";

/** What is the same for all rows of a table. */
export interface Frame<T> {
  shown: Column<T>[];
  /** On telephones: columns that stand below the name. */
  under: Column<T>[];
  classes: string[];
  pins: (CSSProperties | undefined)[];
  chooses: boolean;
  offers: boolean;
}

/** What rows do; looked up when it is done, so that rows need not be drawn anew for other functions. */
export interface Does<T> {
  choose: (index: number, upTo: boolean) => void;
  actions?: (row: T) => MenuItems;
  onOpen?: (row: T) => void;
  onPoint?: (row: T | null) => void;
}

interface RowProps<T> {
  row: T;
  id: string | number;
  /** Its place among the rows, and among all that the table shows. */
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
      {shown.map((one, place) => {
        const heat = one.heat?.(row);
        return (
          <td
            key={one.id}
            className={heat ? `${classes[place]} heat` : classes[place]}
            style={heat ? { ...pins[place], ...heated(heat) } : pins[place]}
            title={one.title?.(row)}
          >
            {one.cell(row)}
            {one.name && under.length > 0 && (
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
          {act && <Fragment key={id}>{act(row)}</Fragment>}
          {/* Never that of the row that was drawn here before. */}
          {offers && <Menu key={id} label={`Actions of ${called}`} action="more" items={() => does.current.actions?.(row) ?? []} />}
        </td>
      )}
    </tr>
  );
}

/** Where a cell stays when the table is scrolled sideways; until then it has no place of its own. */
export const pinnedAt = (left: number) => ({ "--left": `${left}px` }) as CSSProperties;
const PINNED_FIRST = pinnedAt(0);

const heated = (heat: number) => ({ "--heat": `color-mix(in srgb, var(--d5) ${Math.round(26 * heat)}%, transparent)` }) as CSSProperties;

export const TableRow = memo(Row) as typeof Row;

/** A row whose data is on its way. */
export const WaitingRow = memo(({ index, columns }: { index: number; columns: number }) => (
  <tr data-row={index} aria-rowindex={index + 2} aria-busy="true">
    <td colSpan={columns}>
      <span className="wait" />
    </td>
  </tr>
));
