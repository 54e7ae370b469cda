import type { ReactNode } from "react";

export interface Column<T> {
  head: string;
  cell: (one: T) => ReactNode;
  num?: boolean;
}

/** A short list as a table, in the order it came in, with what can be done about each. */
export function Rows<T>({
  name,
  rows,
  id,
  columns,
  actions,
}: {
  name: string;
  rows: T[];
  id: (one: T) => string | number;
  columns: Column<T>[];
  actions?: (one: T) => ReactNode;
}) {
  return (
    <div className="scroll">
      <table aria-label={name}>
        <thead>
          <tr>
            {columns.map((one) => (
              <th key={one.head} className={one.num ? "num" : undefined}>
                {one.head}
              </th>
            ))}
            {actions && (
              <th>
                <span className="hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>
              {columns.map((one) => (
                <td key={one.head} className={one.num ? "num" : undefined}>
                  {one.cell(row)}
                </td>
              ))}
              {actions && <td className="actions">{actions(row)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
