/** Buttons that open a menu or a small panel. */

import { ChevronDown, Ellipsis } from "lucide-react";
import { type ReactNode, Suspense, useRef, useState } from "react";

import { Button, type Look } from "./button";
import { near, part } from "./heavy";

export interface MenuItem {
  name: string;
  icon?: ReactNode;
  keys?: string;
  /** Why the action is not possible now; the item stays in the menu and says so. */
  not?: string;
  /** The action is destructive. */
  danger?: boolean;
  act?: () => void;
  /** Address within the web UI. */
  to?: string;
  /** Address outside of the web UI. */
  href?: string;
  checked?: boolean;
}
/** `null` draws a line. */
export type MenuItems = (MenuItem | null)[];

const MORE = <Ellipsis />;
const MenuBox = part((from) => from.MenuBox);
const PopoverBox = part((from) => from.PopoverBox);

interface Opener extends Look {
  label: string;
  text?: ReactNode;
  action?: string;
  not?: string;
  pressed?: boolean;
}

/** The `…` menu, or a labelled button that opens a menu; `face` is for the shell. */
export function Menu({
  label,
  text,
  icon,
  items,
  kind,
  small,
  action,
  not,
  tip,
  pressed,
  face,
  about,
}: Opener & {
  /** A function is called while the menu is open. */
  items: MenuItems | (() => MenuItems);
  face?: ReactNode;
  /** What the menu belongs to; an open menu closes if its button is used for something else. */
  about?: string | number;
}) {
  const button = useRef<HTMLButtonElement>(null);
  /** Had the focus when the menu opened: the button, or the row for which `.` was pressed. */
  const before = useRef<Element>(null);
  const [opened, setOpened] = useState<{ about?: string | number } | null>(null);
  const open = opened !== null && opened.about === about;
  const setOpen = (on: boolean) => setOpened(on ? { about } : null);
  const opens = {
    "aria-haspopup": "menu" as const,
    "aria-expanded": open,
    onPointerEnter: near,
    onFocus: near,
    onClick: () => {
      before.current = document.activeElement;
      setOpen(!open);
    },
  };
  return (
    <>
      {face ? (
        <button ref={button} type="button" className="who" {...opens}>
          {face}
        </button>
      ) : (
        <Button
          ref={button}
          kind={kind ?? (text ? "plain" : "ghost")}
          small={small ?? !text}
          icon={icon ?? (text ? undefined : MORE)}
          tip={tip ?? (text ? undefined : label)}
          not={not}
          pressed={pressed}
          action={action}
          aria-label={text ? undefined : label}
          {...opens}
        >
          {text && (
            <>
              {text} <ChevronDown className="s" />
            </>
          )}
        </Button>
      )}
      {open && (
        <Suspense>
          <MenuBox
            anchor={button}
            before={before}
            label={label}
            items={typeof items === "function" ? items() : items}
            onClose={() => setOpen(false)}
          />
        </Suspense>
      )}
    </>
  );
}

/** A button that opens a small panel; its content is mounted only while it is open. */
export function Popover({
  label,
  text,
  icon,
  children,
  wide,
  ...look
}: Opener & { wide?: boolean; children: ReactNode | ((close: () => void) => ReactNode) }) {
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button
        {...look}
        ref={button}
        icon={icon}
        tip={look.tip ?? (text ? undefined : label)}
        aria-label={text ? undefined : label}
        aria-haspopup="dialog"
        aria-expanded={open}
        onPointerEnter={near}
        onFocus={near}
        onClick={() => setOpen(!open)}
      >
        {text}
      </Button>
      {open && (
        <Suspense>
          <PopoverBox anchor={button} label={label} wide={wide} onClose={close}>
            {typeof children === "function" ? children(close) : children}
          </PopoverBox>
        </Suspense>
      )}
    </>
  );
}
