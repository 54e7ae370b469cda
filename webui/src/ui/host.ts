/** What anybody may say at any time, questions and toasts, and the one place that shows it. */

import type { ReactNode } from "react";

export interface Question {
  title: string;
  text: ReactNode;
  /** What the button does, as `Delete experiment`. */
  verb: string;
  icon?: ReactNode;
  /** It destroys something: Enter does not accept it. */
  danger?: boolean;
  /** What must be typed before it can be accepted. */
  typed?: string;
  /** What the other button says. */
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
let show: ((told: Told) => void) | null = null;
let wake: (() => void) | null = null;

export function tellHost(told: Told) {
  if (show) show(told);
  else waiting.push(told);
  wake?.();
}

/** The host takes over what was told before it was there. */
export function beHost(take: (told: Told) => void): () => void {
  show = take;
  waiting.forEach(take);
  waiting = [];
  return () => {
    show = null;
  };
}

/** Who can make the host appear. */
export function onWanted(act: () => void): () => void {
  wake = act;
  if (waiting.length) act();
  return () => {
    wake = null;
  };
}
