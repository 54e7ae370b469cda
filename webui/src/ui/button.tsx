/** Buttons. */

import type { ButtonHTMLAttributes, MouseEvent, ReactNode, Ref } from "react";
import { Link } from "react-router";

import { sentence } from "../parts/format";

export interface Look {
  kind?: "plain" | "primary" | "danger" | "ghost";
  small?: boolean;
  icon?: ReactNode;
  /** Tooltip. */
  tip?: string;
  /** Keyboard shortcut, such as `Ctrl K` or `P`. */
  keys?: string;
  count?: number;
}

const classes = ({ kind = "plain", small }: Look, square = false) => `btn ${kind} ${small ? "s" : ""} ${square ? "sq" : ""}`;

function Inside({ icon, count, children }: { icon?: ReactNode; count?: number; children?: ReactNode }) {
  return (
    <>
      {icon}
      {children !== undefined && <span>{children}</span>}
      {count ? <span className="cnt"> {count}</span> : null}
    </>
  );
}

interface Props extends Look, Omit<ButtonHTMLAttributes<HTMLButtonElement>, "title"> {
  pressed?: boolean;
  /** Why the button is disabled; it stays visible and says so. */
  not?: string;
  action?: string;
  ref?: Ref<HTMLButtonElement>;
}

/** Takes the click away from the button, and from the form that it would submit. */
const nothing = (event: MouseEvent) => event.preventDefault();

export function Button({ kind, small, icon, tip, keys, count, pressed, not, action, children, className = "", ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      className={`${classes({ kind, small }, children === undefined)} ${className}`}
      // Not `disabled`: the reason must be readable with the keyboard, too.
      aria-disabled={not ? true : undefined}
      aria-description={not ? sentence(not) : undefined}
      onClick={not ? nothing : rest.onClick}
      aria-pressed={pressed}
      data-tip={not ? sentence(not) : tip}
      data-keys={keys}
      data-action={action}
    >
      <Inside icon={icon} count={count}>
        {children}
      </Inside>
    </button>
  );
}

/** A square icon button; `label` is its accessible name. */
export const IconButton = ({ label, tip, kind = "ghost", small = true, ...rest }: Omit<Props, "children"> & { label: string }) => (
  <Button {...rest} kind={kind} small={small} aria-label={label} tip={tip ?? label} />
);

/** A link that looks like a button: `to` leads within the web UI, `href` to a download or an outside address. */
export function LinkButton({
  to,
  href,
  icon,
  children,
  tip,
  keys,
  count,
  label,
  not,
  ...look
}: Look & {
  to?: string;
  href?: string;
  children?: ReactNode;
  label?: string;
  /** Why it leads nowhere now; it is a disabled button then. */
  not?: string;
}) {
  if (not)
    return (
      <Button {...look} icon={icon} keys={keys} count={count} not={not} aria-label={label}>
        {children}
      </Button>
    );
  const common = {
    className: classes(look, children === undefined),
    "aria-label": label,
    "data-tip": tip ?? label,
    "data-keys": keys,
  };
  const inside = (
    <Inside icon={icon} count={count}>
      {children}
    </Inside>
  );
  return to === undefined ? (
    <a {...common} href={href}>
      {inside}
    </a>
  ) : (
    <Link {...common} to={to}>
      {inside}
    </Link>
  );
}

/** A switch between two to four options. */
export function Segments<T extends string>({
  name,
  value,
  options,
  onChange,
  small,
}: {
  name: string;
  value: T;
  options: readonly (readonly [T, ReactNode])[];
  onChange: (value: T) => void;
  small?: boolean;
}) {
  return (
    <span className={`seg ${small ? "s" : ""}`} role="group" aria-label={name}>
      {options.map(([id, label]) => (
        <button key={id} type="button" aria-pressed={id === value} onClick={() => onChange(id)}>
          {label}
        </button>
      ))}
    </span>
  );
}
