/** The state of an object: always an icon and a word, with colour as the third sign. */

import {
  CircleArrowDown,
  CircleCheck,
  CirclePause,
  CirclePlay,
  CircleSlash,
  CircleMinus,
  Clock,
  LoaderCircle,
  type LucideIcon,
} from "lucide-react";
import type { ComponentType, ReactElement } from "react";

import { stateName } from "../parts/format";

/** Filled, with the cross on top; the library's icon draws one stroke of it below. */
const Stop = ({ className }: { className?: string }) => (
  <svg className={`lucide ${className}`} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeLinecap="round" aria-hidden="true">
    <path d="M8 2h8l6 6v8l-6 6H8l-6-6V8z" fill="currentColor" strokeLinejoin="round" />
    <path d="m9 9 6 6m0-6-6 6" />
  </svg>
);

type Kind = "running" | "done" | "error" | "paused" | "queued" | "off";
interface Mark {
  kind: Kind;
  icon: LucideIcon | ComponentType<{ className?: string }>;
  look?: string;
  word?: string;
}

const running: Mark = { kind: "running", icon: LoaderCircle, look: "turns arc", word: "RUNNING" };
const queued: Mark = { kind: "queued", icon: Clock, look: "dashed", word: "QUEUED" };
const off: Mark = { kind: "off", icon: CircleSlash };
const failed: Mark = { kind: "error", icon: Stop, look: "filled" };
const starting: Mark = { kind: "queued", icon: CirclePlay, look: "dashed" };
const gone: Mark = { kind: "off", icon: CircleMinus };

/** One word per state: whatever holds slots is `running` on every page. */
const MARKS: Record<string, Mark> = {
  RUNNING: running,
  SCHEDULED: running,
  SCHEDULED_BACKFILLED: running,
  ACTIVE: { ...running, look: "", icon: CirclePlay, word: "ACTIVE" },
  QUEUED: queued,
  PENDING: queued,
  WAITING: queued,
  PULLING: starting,
  STARTING: starting,
  ASSIGNED: starting,
  PAUSED: { kind: "paused", icon: CirclePause },
  COMPLETED: { kind: "done", icon: CircleCheck, look: "filled" },
  SUCCEEDED: { kind: "done", icon: CircleCheck, look: "filled" },
  ERROR: failed,
  FAILED: failed,
  DELETE_FAILED: failed,
  CANNOT_START: failed,
  CANCELED: off,
  STOPPED: { ...off, icon: CircleArrowDown, word: "STOPPED EARLY" },
  STOPPED_EARLY: { ...off, icon: CircleArrowDown },
  DELETED: gone,
  DELETING: { ...gone, look: "turns arc", icon: LoaderCircle },
  STOPPING: { ...off, look: "turns arc", icon: LoaderCircle },
  TERMINATED: off,
};

const markOf = (name: string): Mark => MARKS[name] ?? MARKS[name.split("_")[0]!] ?? off;

/** The word that pages show for a state. */
export const stateWord = (state: string) => (markOf(state).word ?? state.replaceAll("_", " ")).toLowerCase();

export const stateColour = (state: string) => `var(--${markOf(stateName(state)).kind})`;

const icons = new Map<Mark, ReactElement>();

/** The same element each time: React passes over it when a row of a list shows another object in the same state. */
function iconOf(mark: Mark): ReactElement {
  const { kind, icon: Icon, look = "" } = mark;
  const icon = icons.get(mark) ?? <Icon className={`s mark ${kind} ${look}`} />;
  icons.set(mark, icon);
  return icon;
}

export const StateIcon = ({ state }: { state: string }) => iconOf(markOf(stateName(state)));

/** The text is the platform's state name; the style sheet changes its case. */
export function State({ state, why, pill }: { state: string; why?: string; pill?: boolean }) {
  const name = stateName(state);
  const { kind, word } = markOf(name);
  return (
    <span className={`state ${kind} ${pill ? "pill" : ""}`} title={why || undefined}>
      {iconOf(markOf(name))}
      <span>{word ?? name.replaceAll("_", " ")}</span>
    </span>
  );
}
