/** The whole log as a strip at the right: shows errors, warnings and the view; a click jumps there. */

import type { KeyboardEvent, PointerEvent } from "react";

import type { View } from "./list";
import type { Summary } from "./source";

const PARTS = 240;
const STEP = 0.02;

interface Props {
  summary: Summary;
  view: View;
  onGo: (number: number) => void;
}

export function Strip({ summary, view, onGo }: Props) {
  const end = Math.max(summary.lastNumber, view.last);
  const start = Math.max(summary.lastNumber - summary.lines, 0);
  const count = Math.max(end - start, 1);
  const share = (number: number) => Math.min(Math.max((number - start) / count, 0), 1);
  const here = view.first || start + 1;
  const go = (place: number) => onGo(Math.round(start + 1 + Math.min(Math.max(place, 0), 1) * (count - 1)));
  const at = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return (event.clientY - box.top) / box.height;
  };
  const onKey = (event: KeyboardEvent) => {
    const by = { ArrowDown: STEP, ArrowUp: -STEP, PageDown: 5 * STEP, PageUp: -5 * STEP }[event.key];
    if (by) go(share(here) + by);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      className="map"
      role="slider"
      tabIndex={0}
      aria-label="Place in the log"
      aria-orientation="vertical"
      aria-valuemin={start + 1}
      aria-valuemax={end}
      aria-valuenow={here}
      aria-valuetext={`line ${here.toLocaleString("en")} of ${end.toLocaleString("en")}`}
      onKeyDown={onKey}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        go(at(event));
      }}
      onPointerMove={(event) => event.buttons === 1 && go(at(event))}
    >
      {summary.marks.map(({ part, errors, warnings }) => (
        <i
          key={part}
          className={errors ? "error" : "warning"}
          style={{ top: `${(part / PARTS) * 100}%` }}
          title={counts(errors, warnings)}
        />
      ))}
      <b style={{ top: `${share(here - 1) * 100}%`, height: `max(6px, ${(share(view.last) - share(here - 1)) * 100}%)` }} />
    </div>
  );
}

const counts = (errors: number, warnings: number) =>
  [errors && (errors === 1 ? "1 error" : `${errors} errors`), warnings && (warnings === 1 ? "1 warning" : `${warnings} warnings`)]
    .filter(Boolean)
    .join(", ");
