/** Where the user is, passed from the page to the shell: breadcrumbs, tab title, available actions. */

import { useEffect, useSyncExternalStore } from "react";

import type { MenuItem } from "./menu";

export interface Crumb {
  name: string;
  to?: string;
}
export interface Place {
  crumbs: Crumb[];
  title?: string;
}

function store<T>(empty: T) {
  let value = empty;
  const watchers = new Set<() => void>();
  const set = (next: T) => {
    value = next;
    watchers.forEach((tell) => tell());
  };
  const subscribe = (watcher: () => void) => {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  };
  return { set, use: () => useSyncExternalStore(subscribe, () => value) };
}

const places = store<Place>({ crumbs: [] });
const actions = store<MenuItem[]>([]);
const NAME = "Steadfast";
const NONE: MenuItem[] = [];

/** Every page calls it: the last crumb is the current page; `title` is a longer text for the browser tab. */
export function usePlace({ crumbs, title }: Place) {
  const written = JSON.stringify([crumbs, title]);
  useEffect(() => {
    const [crumbs, title] = JSON.parse(written) as [Crumb[], string | null];
    places.set({ crumbs, title: title ?? undefined });
    document.title = [title ?? crumbs.at(-1)?.name, NAME].filter(Boolean).join(" · ");
  }, [written]);
}

/** Actions that the palette offers for the current page; pass the same array until they change. */
export function useActionsHere(items: MenuItem[]) {
  useEffect(() => {
    actions.set(items);
    return () => actions.set(NONE);
  }, [items]);
}

export const usePlaceNow = places.use;
export const useActionsNow = actions.use;
