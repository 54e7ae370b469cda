/** Keyboard shortcuts, which must not react while the user types. */

import { useEffect, useRef } from "react";

export const isTyping = (event: KeyboardEvent) => {
  const target = event.target as HTMLInputElement;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  // Check boxes, radio buttons and sliders take no text.
  if (/^(checkbox|radio|range)$/.test(target.type ?? "")) return false;
  return /INPUT|SELECT|TEXTAREA/.test(target.tagName ?? "") || target.isContentEditable;
};

const OFF = "keys off";
export const lettersOff = () => localStorage.getItem(OFF) !== null;
export const switchLetters = (on: boolean) => (on ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));

/** Whether something is open above the page; the page's shortcuts are then off. */
export const isCovered = () => document.querySelector(".dialog, .menu-box, dialog[open]") !== null;

/** Calls the handler of a key that is pressed outside of fields, menus and dialogs. */
export function useKey(keys: Record<string, (event: KeyboardEvent) => void>) {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isTyping(event) || isCovered() || lettersOff()) return;
      current.current[event.key]?.(event);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
