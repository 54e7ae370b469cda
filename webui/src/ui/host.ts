/** Questions and toasts that any code can raise, and the one host that shows them. */

import type { ReactNode } from "react";

export interface Question {
  title: string;
  text: ReactNode;
  /** Label of the accept button, such as `Delete experiment`. */
  verb: string;
  icon?: ReactNode;
  /** The action is destructive, so Enter does not accept it. */
  danger?: boolean;
  /** Text that must be typed to enable the accept button. */
  typed?: string;
  /** Label of the other button. */
  cancel?: string;
}

export interface Toast {
  text: ReactNode;
  kind?: "done" | "error" | "info";
  undo?: () => unknown;
  action?: { name: string; act?: () => void; to?: string };
}

export type Told = { kind: "question"; question: Question; answer: (yes: boolean) => void } | { kind: "toast"; toast: Toast };

let waiting: Told[] = [];
let show: ((toast: Told) => void) | null = null;
let wake: (() => void) | null = null;

export function tellHost(toast: Told) {
  if (show) show(toast);
  else waiting.push(toast);
  wake?.();
}

/** Registers the host, which first receives everything raised before it was mounted. */
export function beHost(take: (toast: Told) => void): () => void {
  show = take;
  waiting.forEach(take);
  waiting = [];
  return () => {
    show = null;
  };
}

/** Registers the function that mounts the host. */
export function onWanted(act: () => void): () => void {
  wake = act;
  if (waiting.length) act();
  return () => {
    wake = null;
  };
}
