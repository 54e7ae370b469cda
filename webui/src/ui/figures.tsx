/** The key figures of a page, at most five. */

import { Children, type CSSProperties, type ReactNode } from "react";
import { Link } from "react-router";

export const Figures = ({ children, label }: { children: ReactNode; label?: string }) => (
  <div className="stats" role="group" aria-label={label ?? "Figures"} style={{ "--n": Children.toArray(children).length } as CSSProperties}>
    {children}
  </div>
);

export interface FigureProps {
  name: ReactNode;
  value: ReactNode;
  unit?: ReactNode;
  note?: ReactNode;
  to?: string;
  bad?: boolean;
  children?: ReactNode;
}

export function Figure({ name, value, unit, note, to, bad, children }: FigureProps) {
  const inside = (
    <>
      <div className="k">{name}</div>
      <div className={`v ${bad ? "bad" : ""}`}>
        <span title={typeof value === "string" ? value : undefined}>{value}</span> {unit && <small>{unit}</small>}
      </div>
      {note && (
        <div className="s" title={typeof note === "string" ? note : undefined}>
          {note}
        </div>
      )}
      {children && <div className="more">{children}</div>}
    </>
  );
  return to ? (
    <Link className="stat" to={to}>
      {inside}
    </Link>
  ) : (
    <div className="stat">{inside}</div>
  );
}
