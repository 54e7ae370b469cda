/** What is typed after something was asked for and before its field has the focus. */

import { useCallback, useLayoutEffect, useRef } from "react";

/**
 * Collects the letters that are typed while a dialog is on its way, which would be lost, or act on the page.
 * Returns a function with what was typed so far.
 */
export function useTypedAhead(waits: boolean): () => string {
  const typed = useRef("");
  useLayoutEffect(() => {
    typed.current = "";
    if (!waits) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.key.length !== 1) return;
      if (document.activeElement?.closest("[role=dialog]")) return;
      typed.current += event.key;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    // On the window: before the keys that work on every page, which listen at the document.
    window.addEventListener("keydown", onKey, { capture: true });
    return () => window.removeEventListener("keydown", onKey, { capture: true });
  }, [waits]);
  return useCallback(() => typed.current, []);
}
