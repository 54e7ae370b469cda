/** Keys that work on every page. */

import { useEffect, useRef } from "react";
import { useNavigate } from "react-router";

import { get } from "../api/client";
import type { Experiment } from "../api/types";
import { isCovered, isTyping, lettersOff } from "../ui/keys";
import { ALL } from "../places";

/**
 * `g` and a letter go to a place, `/` to the search field, `[` and `]` to the neighbouring trials, `?` shows all keys,
 * Ctrl K opens the palette.
 */
export function useKeys(help: () => void, palette: () => void) {
  const navigate = useNavigate();
  // The page may change between the two keys, so this must survive a render.
  const before = useRef("");
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        palette();
        return;
      }
      if (isTyping(event) || isCovered() || lettersOff()) return;
      const place = before.current === "g" && ALL.find(({ key }) => key === event.key);
      before.current = event.key;
      if (place) {
        navigate(place.path);
        // The same key must not also act on a list.
        event.stopImmediatePropagation();
      } else if (event.key === "/") {
        event.preventDefault();
        const search = document.querySelector<HTMLInputElement>("main input[type=search], main input[data-search]");
        if (search) search.focus();
        else palette();
      } else if (event.key === "[") void neighbour(-1).then((to) => to && navigate(to));
      else if (event.key === "]") void neighbour(1).then((to) => to && navigate(to));
      else if (event.key === "?") help();
    };
    document.addEventListener("keydown", onKey, { capture: true });
    return () => document.removeEventListener("keydown", onKey, { capture: true });
  }, [navigate, help, palette]);
}

/** The address of the same tab for the previous or next trial; null if there is none. */
async function neighbour(by: number): Promise<string | null> {
  const [, experiment, trial, rest] = /\/experiments\/(\d+)\/trials\/(\d+)(.*)/.exec(location.pathname) ?? [];
  if (!trial) return null;
  const { experiment: above } = await get<{ experiment: Experiment }>(`experiments/${experiment}`);
  const ids = [...above.trialIds].sort((a, b) => a - b);
  const next = ids[ids.indexOf(Number(trial)) + by];
  return next ? `/experiments/${experiment}/trials/${next}${rest}` : null;
}
