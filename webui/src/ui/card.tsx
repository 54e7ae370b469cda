/** Surfaces: cards, notes, facts and foldable sections. */

import { ChevronRight, Info, OctagonX, TriangleAlert } from "lucide-react";
import { Fragment, type ReactNode } from "react";

import { Tag } from "./text";

export interface CardProps {
  title?: ReactNode;
  count?: number;
  /** At the right of the title. */
  more?: ReactNode;
  children?: ReactNode;
  /** The content has no padding, such as a table. */
  flush?: boolean;
  id?: string;
  label?: string;
}

export const Card = ({ title, count, more, children, flush, id, label }: CardProps) => (
  <section className={`card ${flush ? "flush" : ""}`} id={id} aria-label={label ?? (typeof title === "string" ? title : undefined)}>
    {(title || more) && (
      <header>
        {title && <h2>{title}</h2>}
        {count !== undefined && <Tag>{count}</Tag>}
        {more && <span className="r">{more}</span>}
      </header>
    )}
    {flush ? children : children && <div className="pad">{children}</div>}
  </section>
);

const ICONS = { error: <OctagonX />, warn: <TriangleAlert />, info: <Info /> };

export const Note = ({
  kind,
  children,
  action,
  role,
}: {
  kind: keyof typeof ICONS;
  children: ReactNode;
  action?: ReactNode;
  role?: string;
}) => (
  <div className={`note ${kind}`} role={role}>
    {ICONS[kind]}
    <div>{children}</div>
    {action}
  </div>
);

/** Names and values, one below the other. */
export const Facts = ({ facts }: { facts: (readonly [name: string, value: ReactNode])[] }) => (
  <dl className="kv">
    {facts
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd title={typeof value === "string" ? value : undefined}>{value}</dd>
        </Fragment>
      ))}
  </dl>
);

export const Fold = ({ title, children, open }: { title: ReactNode; children: ReactNode; open?: boolean }) => (
  <details className="fold" open={open}>
    <summary>
      <ChevronRight className="s" /> {title}
    </summary>
    {children}
  </details>
);
