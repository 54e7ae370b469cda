export { ColumnPicker } from "./picker";
export { Table, type TableProps } from "./table";
export type { Column, ColumnView, Sort, Source } from "./types";
export { useKeptView } from "./view";
