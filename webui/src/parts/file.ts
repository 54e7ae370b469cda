/** Files that a page creates. */

// The services and `det` use the same two patterns in det_contracts/spreadsheet.py, tested with the same examples in
// cells.json.
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|-(?:inf|Infinity|nan))$/;

/** A text that is safe as a table cell: what a spreadsheet would take for a formula gets an apostrophe in front. */
export const harmless = (text: string) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);

/** A CSV file of rows, each a list of values; what a spreadsheet would take for a formula stays text. */
export function csv(rows: unknown[][]): string {
  const cell = (value: unknown) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    return `"${harmless(text).replaceAll('"', '""')}"`;
  };
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}

export function save(name: string, text: string, type = "text/csv") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
