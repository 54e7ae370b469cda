/** Messages about finished actions, at the bottom right, with undo where possible. */

import type { ReactNode } from "react";

import { tellHost, type Toast } from "./host";

export const toast = (toast: Toast) => tellHost({ kind: "toast", toast });

/** An action that failed; the message stays until it is closed. */
export const failed = (error: unknown, what?: ReactNode) =>
  toast({ kind: "error", text: [what, error instanceof Error ? error.message : String(error)].filter(Boolean).join(": ") });

export type { Toast };
