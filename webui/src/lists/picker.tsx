import { useState } from "react";

import { Popup } from "../parts/popup";
import { type Column, DEFAULT } from "./columns";

/** Which columns are shown, in which order, and how many of the first ones stay in view. */
export function Picker({
  offered,
  shown,
  pinned,
  onChange,
  onPin,
}: {
  offered: Column[];
  shown: string[];
  pinned: number;
  onChange: (ids: string[]) => void;
  onPin: (count: number) => void;
}) {
  const [wanted, setWanted] = useState("");
  const headings = [...new Set(offered.map((one) => one.of))];
  const toggle = (id: string) => onChange(shown.includes(id) ? shown.filter((one) => one !== id) : [...shown, id]);
  const move = (at: number, by: number) => {
    const next = [...shown];
    next.splice(at + by, 0, ...next.splice(at, 1));
    onChange(next);
  };
  const label = (id: string) => offered.find((one) => one.id === id)?.label ?? id;
  return (
    <Popup name="Columns">
      <div className="picker">
        <section>
          <label>
            Find a column <input value={wanted} onChange={(event) => setWanted(event.target.value)} />
          </label>
          {headings.map((heading) => {
            const found = offered.filter(
              (one) => one.of === heading && `${one.label} ${one.id}`.toLowerCase().includes(wanted.toLowerCase()),
            );
            return (
              found.length > 0 && (
                <fieldset key={heading}>
                  <legend>{heading}</legend>
                  {found.map((one) => (
                    <label key={one.id}>
                      <input type="checkbox" checked={shown.includes(one.id)} onChange={() => toggle(one.id)} /> {one.label}
                    </label>
                  ))}
                </fieldset>
              )
            );
          })}
        </section>
        <section>
          <h2>Order</h2>
          <ol className="plain">
            {shown.map((id, at) => (
              <li key={id} className="actions">
                <button type="button" disabled={at === 0} aria-label={`${label(id)} further left`} onClick={() => move(at, -1)}>
                  ↑
                </button>
                <button
                  type="button"
                  disabled={at === shown.length - 1}
                  aria-label={`${label(id)} further right`}
                  onClick={() => move(at, 1)}
                >
                  ↓
                </button>
                {label(id)} {at < pinned && <span className="label">stays</span>}
              </li>
            ))}
          </ol>
          <label>
            Columns that stay in view{" "}
            <input type="number" min={0} max={5} value={pinned} onChange={(event) => onPin(Number(event.target.value))} />
          </label>
          <button type="button" onClick={() => onChange(DEFAULT)}>
            As at first
          </button>
        </section>
      </div>
    </Popup>
  );
}
