import { Columns3, GripVertical } from "lucide-react";
import { useState } from "react";

import { Button } from "../button";
import { Check, Search } from "../field";
import { Popover } from "../menu";
import { movedTo } from "./order";
import type { Column, ColumnView } from "./types";

/** Chooses the columns, in folders, and their order, by dragging or with Alt and the arrow keys. */
export function ColumnPicker<T>({ columns, view }: { columns: Column<T>[]; view: ColumnView }) {
  const [wanted, setWanted] = useState("");
  const shown = view.shown ?? columns.filter((column) => !column.off).map((column) => column.id);
  const headOf = (id: string) => columns.find((column) => column.id === id)?.head ?? id;
  const fits = (column: Column<T>) => `${column.head} ${column.id}`.toLowerCase().includes(wanted.toLowerCase());
  const folders = [...new Set(columns.filter(fits).map((column) => column.folder ?? "General"))];
  const [dragged, setDragged] = useState<string | null>(null);
  const [over, setOver] = useState<number | null>(null);
  const stop = () => {
    setDragged(null);
    setOver(null);
  };
  const move = (id: string, to: number) => view.setShown(movedTo(shown, id, to));
  const aim = (at: number) => {
    if (dragged === null || over !== at) return undefined;
    const from = shown.indexOf(dragged);
    return from === at ? undefined : from < at ? "aims-below" : "aims-above";
  };
  return (
    <Popover label="Columns" text="Columns" icon={<Columns3 />} wide>
      <div className="picker">
        <section>
          <Search label="Find a column" value={wanted} onChange={setWanted} small />
          {folders.map((folder) => (
            <fieldset key={folder}>
              <legend className="mh">{folder}</legend>
              {columns
                .filter((column) => (column.folder ?? "General") === folder && fits(column))
                .map((column) => (
                  <Check
                    key={column.id}
                    label={column.head}
                    checked={shown.includes(column.id)}
                    onChange={(on) => view.setShown(on ? [...shown, column.id] : shown.filter((id) => id !== column.id))}
                  />
                ))}
            </fieldset>
          ))}
        </section>
        <section>
          <h2 className="mh">Drag to reorder, or use Alt and the arrow keys</h2>
          <ol>
            {shown.map((id, at) => (
              <li
                key={id}
                className={aim(at)}
                draggable
                onDragStart={(event) => {
                  event.dataTransfer.effectAllowed = "move";
                  event.dataTransfer.setData("text/plain", headOf(id));
                  setDragged(id);
                }}
                onDragOver={(event) => {
                  // What is dragged here from elsewhere is no column.
                  if (dragged === null) return;
                  event.preventDefault();
                  setOver(at);
                }}
                onDragEnd={stop}
                onDrop={(event) => {
                  event.preventDefault();
                  if (dragged !== null) move(dragged, at);
                  stop();
                }}
              >
                <button
                  type="button"
                  className="mi"
                  aria-label={`${headOf(id)}, column ${at + 1} of ${shown.length}; Alt and an arrow moves it`}
                  onKeyDown={(event) => {
                    const by = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 }[event.key];
                    if (!event.altKey || !by) return;
                    event.preventDefault();
                    move(id, at + by);
                  }}
                >
                  <GripVertical className="s" />
                  <span className="cut">{headOf(id)}</span>
                </button>
              </li>
            ))}
          </ol>
          <Button small onClick={() => view.setShown(null)}>
            Reset
          </Button>
        </section>
      </div>
    </Popover>
  );
}
