/** Saved views of the list of experiments: built-in ones, and those that the user saved in this browser. */

const KEY = "views of experiments";
const WEEK_MS = 7 * 86_400_000;

export interface SavedView {
  name: string;
  /** The part of the address after `?`. */
  search: string;
}

export function savedViews(): SavedView[] {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "[]");
  } catch {
    return [];
  }
}

export function saveView(view: SavedView) {
  localStorage.setItem(KEY, JSON.stringify([...savedViews().filter((savedView) => savedView.name !== view.name), view]));
}

export function forgetView(name: string) {
  localStorage.setItem(KEY, JSON.stringify(savedViews().filter((savedView) => savedView.name !== name)));
}

export interface Standing {
  id: string;
  name: string;
  q: string;
  /** Includes archived experiments. */
  archived?: boolean;
  /** How many there are is worth knowing: what runs, or is one's own or open, never totals. */
  counted?: boolean;
}

/** The built-in views. */
export function standing(user: string): Standing[] {
  const week = new Date(Date.now() - WEEK_MS).toISOString().slice(0, 10);
  return [
    { id: "all", name: "All", q: "" },
    { id: "mine", name: "Mine", q: `user:${user}`, counted: true },
    { id: "running", name: "Running", q: "state:RUNNING", counted: true },
    { id: "failed", name: "Failed this week", q: `state:ERROR ended>${week}`, counted: true },
    { id: "archived", name: "Archived", q: "archived:true", archived: true },
  ];
}
