/** The theme and density of this browser's user. */

import { useEffect, useSyncExternalStore } from "react";

export type Theme = "" | "light" | "dark";
export type Density = "compact" | "normal" | "roomy";

function storedChoice<T extends string>(name: string, otherwise: T, show: (value: T) => void) {
  const watchers = new Set<() => void>();
  const now = () => (localStorage.getItem(name) as T | null) ?? otherwise;
  const set = (value: T) => {
    if (value === otherwise) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
    show(value);
    watchers.forEach((tell) => tell());
  };
  const use = (): [T, (value: T) => void] => {
    const value = useSyncExternalStore((watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    }, now);
    useEffect(() => show(value), [value]);
    return [value, set];
  };
  return use;
}

export const useTheme = storedChoice<Theme>("theme", "", (theme) => {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
});

export const useDensity = storedChoice<Density>("density", "normal", (density) => {
  document.documentElement.dataset.density = density;
});

export const useFolded = storedChoice<"" | "folded">("side", "", () => {});
