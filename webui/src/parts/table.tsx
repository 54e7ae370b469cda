import { type ColumnDef, getCoreRowModel, getSortedRowModel, type SortingState, useReactTable } from "@tanstack/react-table";
import { Fragment, type ReactNode, useMemo, useState } from "react";

/** As a function, not as a component: one that is made anew would lose what is open in a cell. */
const drawn = <C,>(what: ReactNode | ((context: C) => ReactNode), context: C): ReactNode =>
  typeof what === "function" ? what(context) : what;

/** A real table, sorted by a click on a heading. */
export function Table<T>({
  rows,
  columns,
  onSort,
  sort,
  name,
  below,
  most,
}: {
  rows: T[];
  columns: ColumnDef<T, any>[];
  /** With `sort` told what was chosen; without it the rows come sorted by whoever is told. */
  onSort?: (id: string, descending: boolean) => void;
  /** The column that rows are sorted by, where the address holds it. */
  sort?: { id: string; desc: boolean } | null;
  name: string;
  /** Rows shown at most, the first in their order. */
  most?: number;
  /** What a row that is opened shows below itself. */
  below?: (row: T) => ReactNode;
}) {
  const [own, setSorting] = useState<SortingState>([]);
  const [sorted, falling] = [sort?.id, sort?.desc];
  // The same list as long as nothing changes: the table takes another one for news, again and again.
  const asked = useMemo(() => (sorted ? [{ id: sorted, desc: Boolean(falling) }] : []), [sorted, falling]);
  const sorting = sort === undefined ? own : asked;
  const table = useReactTable({
    data: rows,
    columns,
    state: { sorting },
    manualSorting: onSort !== undefined && sort === undefined,
    onSortingChange: (update) => {
      const next = typeof update === "function" ? update(sorting) : update;
      setSorting(next);
      if (onSort) onSort(next[0]?.id ?? (sort === undefined ? "id" : ""), next[0]?.desc ?? true);
    },
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
  });
  return (
    <div className="scroll">
      <table aria-label={name}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const sorted = header.column.getIsSorted();
                return (
                  <th
                    key={header.id}
                    className={header.column.columnDef.meta as string}
                    aria-sort={sorted ? (sorted === "asc" ? "ascending" : "descending") : undefined}
                  >
                    {header.column.getCanSort() ? (
                      <button type="button" onClick={header.column.getToggleSortingHandler()}>
                        {drawn(header.column.columnDef.header, header.getContext())}
                        <span aria-hidden>{sorted ? (sorted === "asc" ? " ↑" : " ↓") : ""}</span>
                      </button>
                    ) : (
                      drawn(header.column.columnDef.header, header.getContext())
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody>
          {table
            .getRowModel()
            .rows.slice(0, most)
            .map((row) => (
              <Fragment key={row.id}>
                <tr>
                  {row.getVisibleCells().map((cell) => (
                    <td key={cell.id} className={cell.column.columnDef.meta as string}>
                      {drawn(cell.column.columnDef.cell, cell.getContext())}
                    </td>
                  ))}
                </tr>
                {below?.(row.original) && (
                  <tr>
                    <td colSpan={columns.length}>{below(row.original)}</td>
                  </tr>
                )}
              </Fragment>
            ))}
        </tbody>
      </table>
    </div>
  );
}
