/** What is typed after a dialog was asked for and before its part of the web UI is there. */

import { type RefObject, useLayoutEffect } from "react";

/**
 * Collects letters in `typed`, which would be lost or act on the page. To be shown in place of the part while it loads.
 * Escape and a click elsewhere mean that the dialog is no longer wanted.
 */
export function TypedAhead({ typed, onGiveUp }: { typed: RefObject<string>; onGiveUp: () => void }) {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape") onGiveUp();
      else if (event.ctrlKey || event.metaKey || event.altKey || event.key.length !== 1) return;
      else typed.current += event.key;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    // On the window: before the keys that work on every page, which listen at the document.
    window.addEventListener("keydown", onKey, { capture: true });
    window.addEventListener("pointerdown", onGiveUp);
    return () => {
      window.removeEventListener("keydown", onKey, { capture: true });
      window.removeEventListener("pointerdown", onGiveUp);
    };
  }, [typed, onGiveUp]);
  return null;
}
