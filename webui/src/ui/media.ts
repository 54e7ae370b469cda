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
export type Screen = "small" | "usual" | "wide";

/** For how many columns there is room. */
export function useScreen(): Screen {
  const wide = useMedia("(min-width: 1800px)");
  const small = useMedia("(max-width: 1399px)");
  return wide ? "wide" : small ? "small" : "usual";
}
