/** Parts under the names that pages have known them by; new pages take those of `ui/`. */

import { type ReactNode, useEffect } from "react";
import { Link } from "react-router";

import { ask } from "../ui/dialog";
import { Card as Surface } from "../ui/card";
import { Tabs as Parts } from "../ui/tabs";

export { Progress } from "../ui/meter";
export { State } from "../ui/state";
export { Empty, Failure, Loaded } from "../ui/status";
export { Copyable, Time } from "../ui/text";

export const Card = ({ title, children, more }: { title?: string; children: ReactNode; more?: ReactNode }) => (
  <Surface title={title} more={more}>
    {children}
  </Surface>
);

export const Tabs = ({ base, tabs }: { base: string; tabs: [string, string][] }) => (
  <Parts base={base} tabs={tabs.map(([path, name]) => ({ path, name }))} />
);

export interface Asked {
  title: string;
  text: string;
  verb: string;
  act: () => void;
}

/** Asks once before something is lost. */
export function Confirm({ asked, onClose }: { asked: Asked | null; onClose: () => void }) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is asked once, when there is something to ask
  useEffect(() => {
    if (!asked) return;
    void ask({ ...asked, danger: true }).then((yes) => {
      onClose();
      if (yes) asked.act();
    });
  }, [asked]);
  return null;
}

export const ExperimentLink = ({ id, children }: { id: number; children?: ReactNode }) => (
  <Link to={`/experiments/${id}/overview`}>{children ?? id}</Link>
);
export const TrialLink = ({ experiment, id }: { experiment: number; id: number }) => (
  <Link to={`/experiments/${experiment}/trials/${id}/overview`}>{id}</Link>
);
