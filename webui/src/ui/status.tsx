/** What a page shows while it loads, when there is nothing, and when loading fails. */

import type { ReactNode } from "react";

import { ApiError } from "../api/client";
import { Button } from "./button";
import { Note } from "./card";
import { Copyable } from "./text";

export type Shape = "rows" | "figures" | "chart" | "page";

const WIDTHS = [150, 110, 190, 130, 160];

/** A placeholder in the final shape. It appears after a moment, when most answers have already come. */
export function Loading({ shape = "rows" }: { shape?: Shape }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {shape === "page" && <span className="sk" style={{ width: 220, height: 18, margin: "6px 0 20px" }} />}
      {shape === "figures" ? (
        <div className="stats">
          {[90, 70, 110, 80].map((width) => (
            <div key={width} className="stat">
              <span className="sk" style={{ width }} />
              <span className="sk" style={{ width: width * 0.7, height: 18, margin: "10px 0" }} />
            </div>
          ))}
        </div>
      ) : shape === "chart" ? (
        <span className="sk" style={{ height: 180, borderRadius: "var(--r-2)", margin: 12 }} />
      ) : (
        WIDTHS.map((width) => (
          <div key={width} className="row">
            <span className="sk" style={{ width: 28 }} />
            <span className="sk" style={{ width }} />
            <span className="sk" style={{ width: 70 }} />
            <span className="sk" style={{ width: 50 }} />
          </div>
        ))
      )}
    </div>
  );
}

export function Empty({ icon, title, children, command }: { icon?: ReactNode; title?: ReactNode; children?: ReactNode; command?: string }) {
  return (
    <div className="void empty">
      {icon}
      {title && <b className="b">{title}</b>}
      {children && <p className={title ? "ink2 sm" : "ink2"}>{children}</p>}
      {command && <Copyable text={command} />}
    </div>
  );
}

export function Loaded<T>({
  answer,
  children,
  shape,
}: {
  answer: { data?: T; error: unknown; isPending: boolean; refetch?: () => unknown };
  children: (data: T) => ReactNode;
  shape?: Shape;
}) {
  if (answer.data !== undefined) return <>{children(answer.data)}</>;
  if (answer.error) return <Failure error={answer.error} again={answer.refetch} />;
  return <Loading shape={shape} />;
}

export const Failure = ({ error, again }: { error: unknown; again?: () => unknown }) => (
  <div className="failure" role="alert">
    <Note
      kind="error"
      action={
        again && (
          <Button small onClick={() => void again()}>
            Try now
          </Button>
        )
      }
    >
      <b className="b">{error instanceof ApiError && error.status === 404 ? "Not found" : "This failed"}.</b>{" "}
      {error instanceof Error ? error.message : String(error)} <span className="ink2">{advice(error)}</span>
    </Note>
  </div>
);

/** What the user can try. */
function advice(error: unknown): string {
  if (!(error instanceof ApiError)) return "The cluster cannot be reached. This page retries by itself; det master info shows more.";
  if (error.status === 403) return "Ask an administrator.";
  if (error.status >= 500) return "A service is unavailable or has failed. This page retries by itself; for details, run det master logs.";
  return "";
}
