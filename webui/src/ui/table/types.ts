import type { ReactNode } from "react";

export type Value = string | number | boolean | null | undefined;

export interface Column<T> {
  id: string;
  head: string;
  cell: (row: T) => ReactNode;
  /** What rows are sorted by, and what is copied; without it the column cannot be sorted here. */
  value?: (row: T) => Value;
  /** Numbers stand at the right. */
  num?: boolean;
  /** Pixels; a column without one takes what is left over: the name. */
  width?: number;
  sort?: boolean;
  /** Under which heading the column picker lists it. */
  folder?: string;
  /** Not shown until it is picked. */
  off?: boolean;
  /** Stays on telephones, as the name does. */
  small?: boolean;
  /** On telephones it stands below the name, which has the width of both then. */
  under?: boolean;
  /** The name of the row: pinned at the left together with what stands before it. */
  name?: boolean;
  /** What a cell says when pointed at. */
  title?: (row: T) => string | undefined;
  /** More than one line. */
  wrap?: boolean;
  /** 0 to 1: how strongly the cell is coloured. */
  heat?: (row: T) => number | null;
}

export type Sort = readonly [id: string, descending: boolean];

/** Which columns are shown, in which order, how wide: kept per user or in the link. */
export interface ColumnView {
  /** Null: as the columns say themselves. */
  shown: string[] | null;
  widths: Record<string, number>;
  setShown: (ids: string[] | null) => void;
  setWidth: (id: string, width: number) => void;
}

/** Rows of which only those in view are there. */
export interface Source<T> {
  count: number;
  at: (index: number) => T | undefined;
  /** Told which rows are in view. */
  want: (from: number, to: number) => void;
}
