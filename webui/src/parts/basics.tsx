import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, NavLink } from "react-router";

import { ApiError } from "../api/client";
import { ago, exact, stateName } from "./format";

const ICONS: Record<string, string> = {
  RUNNING: "▶",
  QUEUED: "…",
  PULLING: "…",
  STARTING: "…",
  ACTIVE: "▷",
  PAUSED: "⏸",
  COMPLETED: "✓",
  CANCELED: "⊘",
  ERROR: "✕",
  DELETING: "⌫",
  DELETE_FAILED: "✕",
};

export function State({ state, why }: { state: string; why?: string }) {
  const name = stateName(state);
  const kind = name.startsWith("STOPPING") ? "STOPPING" : name;
  return (
    <span className={`state ${kind}`} title={why}>
      <span aria-hidden>{ICONS[kind] ?? "◌"}</span> {name.replaceAll("_", " ")}
    </span>
  );
}

export const Time = ({ at }: { at: string | null | undefined }) =>
  at ? (
    <time dateTime={at} title={exact(at)}>
      {ago(at)}
    </time>
  ) : null;

export function Progress({ value }: { value: number | null | undefined }) {
  if (value === null || value === undefined) return null;
  return <progress value={value} aria-label={`${Math.round(value * 100)} %`} title={`${Math.round(value * 100)} %`} />;
}

export const Card = ({ title, children, more }: { title?: string; children: ReactNode; more?: ReactNode }) => (
  <section className="card">
    {title && (
      <header>
        <h2>{title}</h2>
        {more}
      </header>
    )}
    {children}
  </section>
);

export const Empty = ({ children, command }: { children: ReactNode; command?: string }) => (
  <div className="empty">
    <p>{children}</p>
    {command && <Copyable text={command} />}
  </div>
);

export function Copyable({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  const copy = () => navigator.clipboard?.writeText(text).then(() => setDone(true));
  return (
    <button type="button" className="copyable" onClick={copy} title="Copy">
      <code>{text}</code> <span aria-live="polite">{done ? "copied" : ""}</span>
    </button>
  );
}

/** What a page shows while it waits, and when it cannot show what it should. */
export function Loaded<T>({
  found,
  children,
}: {
  found: { data?: T; error: unknown; isPending: boolean };
  children: (data: T) => ReactNode;
}) {
  if (found.data !== undefined) return <>{children(found.data)}</>;
  if (found.error) return <Failure error={found.error} />;
  return <div className="skeleton" role="status" aria-label="Loading" />;
}

export const Failure = ({ error }: { error: unknown }) => (
  <div className="failure" role="alert">
    <strong>{error instanceof ApiError && error.status === 404 ? "Not here" : "This could not be done"}</strong>
    <p>{error instanceof Error ? error.message : String(error)}</p>
    <p className="soft">{advice(error)}</p>
  </div>
);

/** What to try. */
function advice(error: unknown): string {
  if (!(error instanceof ApiError)) return "The cluster cannot be reached. This page asks again by itself; det master info tells more.";
  if (error.status === 403) return "Ask an administrator.";
  if (error.status >= 500)
    return "A service is away or has failed. This page asks again by itself; the cluster's log tells more: det master logs.";
  return "";
}

export function Tabs({ base, tabs }: { base: string; tabs: [string, string][] }) {
  return (
    <nav className="tabs" aria-label="Parts">
      {tabs.map(([path, name]) => (
        <NavLink key={path} to={`${base}/${path}`} replace>
          {name}
        </NavLink>
      ))}
    </nav>
  );
}

export interface Asked {
  title: string;
  text: string;
  verb: string;
  act: () => void;
}

/** Asks once before something is lost. */
export function Confirm({ asked, onClose }: { asked: Asked | null; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (asked) dialog.current?.showModal();
    else dialog.current?.close();
  }, [asked]);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="confirm-title">
      {asked && (
        <form method="dialog">
          <h2 id="confirm-title">{asked.title}</h2>
          <p>{asked.text}</p>
          <menu>
            <button type="submit">Keep</button>
            <button type="submit" className="danger" onClick={asked.act}>
              {asked.verb}
            </button>
          </menu>
        </form>
      )}
    </dialog>
  );
}

export const ExperimentLink = ({ id, children }: { id: number; children?: ReactNode }) => (
  <Link to={`/experiments/${id}/overview`}>{children ?? id}</Link>
);
export const TrialLink = ({ experiment, id }: { experiment: number; id: number }) => (
  <Link to={`/experiments/${experiment}/trials/${id}/overview`}>{id}</Link>
);
