import type { ReactNode } from "react";

export type Value = string | number | boolean | null | undefined;

export interface Column<T> {
  id: string;
  head: string;
  cell: (row: T) => ReactNode;
  /** Value for sorting and copying; without it the column cannot be sorted here. */
  value?: (row: T) => Value;
  /** Numbers are right-aligned. */
  num?: boolean;
  /** In pixels; a column without one, the name, takes the remaining space. */
  width?: number;
  /** What it may be narrowed to if the table has little room, and what it takes if there is plenty. */
  least?: number;
  most?: number;
  sort?: boolean;
  /** Heading under which the column picker lists it. */
  folder?: string;
  /** Hidden until the user picks it. */
  off?: boolean;
  /** Stays visible on telephones, like the name. */
  small?: boolean;
  /** On telephones it is shown below the name, which then spans both widths. */
  under?: boolean;
  /** The name of the row, pinned at the left together with the columns before it. */
  name?: boolean;
  /** Tooltip of a cell. */
  title?: (row: T) => string | undefined;
  /** Text may wrap. */
  wrap?: boolean;
  /** How strongly the cell is coloured, 0 to 1. */
  heat?: (row: T) => number | null;
}

export type Sort = readonly [id: string, descending: boolean];

/** Which columns are shown, in which order and how wide; stored per user or in the link. */
export interface ColumnView {
  /** Null for the defaults of the columns. */
  shown: string[] | null;
  widths: Record<string, number>;
  setShown: (ids: string[] | null) => void;
  setWidth: (id: string, width: number) => void;
}

/** Rows that are loaded only while they are in view. */
export interface Source<T> {
  count: number;
  at: (index: number) => T | undefined;
  /** Called with the range of rows in view. */
  want: (from: number, to: number) => void;
}
