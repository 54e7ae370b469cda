/** Inline text components. */

import { Check, Copy, X } from "lucide-react";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";

import { onTick } from "../parts/clock";
import { ago, exact } from "../parts/format";
import { IconButton } from "./button";

/** One line, cut with an ellipsis if it is too long; the whole text shows on hover. */
export const Cut = ({ children, title, width }: { children: ReactNode; title?: string; width?: number | string }) => (
  <span
    className="cut"
    title={title ?? (typeof children === "string" ? children : undefined)}
    style={width ? { maxWidth: width } : undefined}
  >
    {children}
  </span>
);

const TOLD_MS = 2000;

function useCopied(): [boolean, (text: string) => void] {
  const [done, setDone] = useState(false);
  useEffect(() => {
    const timer = done ? setTimeout(() => setDone(false), TOLD_MS) : undefined;
    return () => clearTimeout(timer);
  }, [done]);
  return [done, (text) => void navigator.clipboard?.writeText(text).then(() => setDone(true))];
}

/** A command or an id that a click copies. */
export function Copyable({ text }: { text: string }) {
  const [done, copy] = useCopied();
  return (
    <button type="button" className="cmd copyable" onClick={() => copy(text)} title="Copy">
      <code>{text}</code>
      {done ? <Check className="s" /> : <Copy className="s" />}
      <span className="vh" aria-live="polite">
        {done ? "copied" : ""}
      </span>
    </button>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, copy] = useCopied();
  return <IconButton icon={done ? <Check /> : <Copy />} label={label} tip={done ? "Copied" : label} onClick={() => copy(text)} />;
}

export const Tag = ({ children, kind = "" }: { children: ReactNode; kind?: "best" | "bad" | "" }) => (
  <span className={`tag ${kind}`} title={typeof children === "string" ? children : undefined}>
    <span>{children}</span>
  </span>
);

/** A filter of a list: a click opens it as a form, the cross removes it. */
export const Chip = ({ children, onClick, onRemove }: { children: string; onClick?: () => void; onRemove?: () => void }) => (
  <span className="chip">
    {onClick ? (
      <button type="button" className="words cut" title={children} onClick={onClick}>
        {children}
      </button>
    ) : (
      <span className="cut" title={children}>
        {children}
      </span>
    )}
    {onRemove && (
      <button type="button" aria-label={`Remove ${children}`} onClick={onRemove}>
        <X />
      </button>
    )}
  </span>
);

/** How long ago it was; updates by itself. */
export const Time = ({ at }: { at: string | null | undefined }) => (at ? <Ago at={at} /> : null);

function Ago({ at }: { at: string }) {
  const age = useSyncExternalStore(onTick, () => ago(at));
  return (
    <time dateTime={at} title={exact(at)}>
      {age}
    </time>
  );
}

// White text on each of them has a contrast above 4.5:1.
const GROUNDS = ["#0b6472", "#6a3fc0", "#8a4b12", "#b0305a", "#1f5fd0", "#17703f", "#56636a", "#82360f"];

/** A user, in two letters; the whole name shows on hover. */
export function Avatar({ name, small, plain }: { name: string; small?: boolean /** The name is already beside it. */; plain?: boolean }) {
  const words = name.split(/[\s._-]+/).filter(Boolean);
  const letters = words.length > 1 ? words[0]![0]! + words.at(-1)![0]! : name.slice(0, 2);
  const place = [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)!) >>> 0, 7);
  const look = { className: `av ${small ? "s" : ""}`, style: { background: GROUNDS[place % GROUNDS.length] } };
  return plain ? (
    <span {...look} aria-hidden="true">
      {letters.toUpperCase()}
    </span>
  ) : (
    <span {...look} role="img" aria-label={name} title={name}>
      {letters.toUpperCase()}
    </span>
  );
}

export const Swatch = ({ colour, label }: { colour: string; label?: string }) => (
  <i className="sw" style={{ background: colour }} title={label}>
    {label && <span className="vh">{label}</span>}
  </i>
);

/** Keys as labelled on the keyboard; `G Q` means one after the other. */
export const Keys = ({ keys }: { keys: string }) => (
  <>
    {keys.split(" ").map((key) => (
      <kbd key={key}>{key}</kbd>
    ))}
  </>
);
