/** What was done, at the foot at the right; with what takes it back where that can be. */

import type { ReactNode } from "react";

import { tellHost, type Toast } from "./host";

export const toast = (toast: Toast) => tellHost({ kind: "toast", toast });

/** What could not be done; it stays until it is closed. */
export const failed = (error: unknown, what?: ReactNode) =>
  toast({ kind: "error", text: [what, error instanceof Error ? error.message : String(error)].filter(Boolean).join(": ") });

export type { Toast };
