/** The places in the navigation. */

import { Activity, Box, FlaskConical, FolderTree, LayoutDashboard, ListOrdered, Server, Settings, SquareTerminal } from "lucide-react";
import type { ReactNode } from "react";

export interface To {
  path: string;
  name: string;
  /** The key after `g`. */
  key: string;
  icon: ReactNode;
  /** Other addresses that belong to the place. */
  also?: RegExp;
}

export const WORK: To[] = [
  { path: "/dashboard", name: "Dashboard", key: "d", icon: <LayoutDashboard /> },
  { path: "/experiments", name: "Experiments", key: "e", icon: <FlaskConical />, also: /^\/(experiments|trials|projects)\b/ },
  { path: "/models", name: "Models", key: "m", icon: <Box />, also: /^\/models\b/ },
];
export const CLUSTER: To[] = [
  { path: "/jobs", name: "Queue", key: "q", icon: <ListOrdered />, also: /^\/(jobs|resourcepool)\b/ },
  { path: "/clusters", name: "Agents", key: "c", icon: <Server /> },
  { path: "/tasks", name: "Tasks", key: "t", icon: <SquareTerminal />, also: /^\/(tasks|commands|tensorboards|notebooks|shells)\b/ },
  { path: "/system/events", name: "Events", key: "v", icon: <Activity />, also: /^\/system\b/ },
];
export const SELF: To[] = [{ path: "/settings", name: "Settings", key: "s", icon: <Settings />, also: /^\/(settings|admin)\b/ }];
export const MORE: To[] = [{ path: "/workspaces", name: "Workspaces", key: "w", icon: <FolderTree />, also: /^\/workspaces\b/ }];
export const ALL = [...WORK, ...CLUSTER, ...MORE, ...SELF];

export const isThere = (to: To, path: string) => path === to.path || (to.also?.test(path) ?? false);

/** All keys and what they do, in two groups. */
export const KEYS: [string, string][] = [
  ["Ctrl K", "Search or jump to"],
  ...ALL.map((to): [string, string] => [`g ${to.key}`, to.name]),
  ["/", "The page's search"],
  ["j k", "Next and previous row"],
  ["Arrows", "Move in a table, a list or a toolbar"],
  ["Enter", "Open the focused item"],
  ["x", "Select the row"],
  ["Shift x", "Extend the selection to the row"],
  [".", "Menu of the row or page"],
  ["p", "Pause or activate"],
  ["f", "Fork"],
  ["c", "Compare the selection"],
  ["[ ]", "Previous and next trial"],
  ["1 8", "Tabs 1 to 8"],
  ["z", "Full screen of a chart"],
  ["n N", "Next and previous error in a log"],
  ["u", "Undo the last action"],
  ["?", "All keys"],
];
