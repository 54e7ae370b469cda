import { Link } from "react-router";

import { sentence } from "../../parts/format";
import { Note } from "../../ui/card";
import type { Why } from "./cause";

/** The failure, shown before anything else. */
export const FailedNote = ({ why, trial, reason }: { why: Why | null; trial?: number; reason: string }) => (
  <Note kind="error" role="status">
    <b className="b">
      {why?.who ?? "It failed"}
      {trial === undefined ? "" : `, trial ${trial}`}.
    </b>{" "}
    {reason && `${sentence(reason)}.`}
    {why && why.line !== reason && why.line && (
      <Link className="cause-line" to={why.to} title={why.line} data-tip="Open log at the cause">
        <code>{why.line}</code>
      </Link>
    )}
    {why?.place && <span className="ink2 sm">{why.place}</span>}
  </Note>
);
