/** Keys: who is typing must not be taken at their word. */

import { useEffect, useRef } from "react";

export const isTyping = (event: KeyboardEvent) => {
  const target = event.target as HTMLInputElement;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  // A box that is checked is no field to type in.
  if (/^(checkbox|radio|range)$/.test(target.type ?? "")) return false;
  return /INPUT|SELECT|TEXTAREA/.test(target.tagName ?? "") || target.isContentEditable;
};

const OFF = "keys off";
export const lettersOff = () => localStorage.getItem(OFF) !== null;
export const switchLetters = (on: boolean) => (on ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));

/** Something is open above the page: its keys are not the page's. */
export const isCovered = () => document.querySelector(".dialog, .menu-box, dialog[open]") !== null;

/** Calls what is wanted by a key that is pressed outside of fields, menus and dialogs. */
export function useKey(keys: Record<string, (event: KeyboardEvent) => void>) {
  const known = useRef(keys);
  known.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isTyping(event) || isCovered() || lettersOff()) return;
      known.current[event.key]?.(event);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
