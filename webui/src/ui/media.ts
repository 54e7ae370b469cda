import { useSyncExternalStore } from "react";

/** Whether a media query matches. */
export function useMedia(wanted: string): boolean {
  return useSyncExternalStore(
    (watcher) => {
      const media = matchMedia(wanted);
      media.addEventListener("change", watcher);
      return () => media.removeEventListener("change", watcher);
    },
    () => matchMedia(wanted).matches,
  );
}

export const useNarrow = () => useMedia("(max-width: 640px)");
