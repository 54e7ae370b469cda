/** Every page: its addresses, what it loads, and its place in the navigation, the palette and the keys, if it has one. */

import { Activity, Box, FlaskConical, FolderTree, LayoutDashboard, ListOrdered, Server, Settings, SquareTerminal } from "lucide-react";
import { type ComponentType, lazy, type ReactNode } from "react";

import { fetchedPage } from "./api/fetched";

interface Place {
  group: "work" | "cluster" | "more" | "self";
  name: string;
  /** The key after `g`. */
  key: string;
  icon: ReactNode;
  /** Other addresses that belong to the place. */
  also?: RegExp;
  /** Its name at the bottom of a narrow screen, which has room for few places. */
  dock?: string;
}

interface Page {
  /** Patterns of React Router. The place leads to the first, without its parameters. */
  paths: string[];
  component: ComponentType;
  place?: Place;
}

export interface To extends Place {
  path: string;
}

/** A page is loaded on demand, to keep the first load small. */
const page = <Name extends string>(load: () => Promise<Record<Name, ComponentType>>, name: Name) =>
  lazy(() => fetchedPage(load).then((module) => ({ default: module[name] })));

export const PAGES: Page[] = [
  {
    paths: ["/dashboard"],
    component: page(() => import("./pages/dashboard"), "Dashboard"),
    place: { group: "work", name: "Dashboard", key: "d", icon: <LayoutDashboard />, dock: "Home" },
  },
  {
    paths: ["/experiments", "/projects/:project/experiments", "/projects/:project"],
    component: page(() => import("./pages/experiments"), "Experiments"),
    place: {
      group: "work",
      name: "Experiments",
      key: "e",
      icon: <FlaskConical />,
      also: /^\/(experiments|trials|projects)\b/,
      dock: "Experiments",
    },
  },
  { paths: ["/new", "/experiments/new"], component: page(() => import("./pages/new"), "NewExperiment") },
  { paths: ["/experiments/compare"], component: page(() => import("./pages/compare"), "Compare") },
  {
    paths: ["/experiments/:id/:tab?", "/experiments/:id/visualization/:view"],
    component: page(() => import("./pages/experiment"), "ExperimentPage"),
  },
  { paths: ["/experiments/:id/trials/:trial/:tab?"], component: page(() => import("./pages/trial"), "TrialPage") },
  { paths: ["/trials/:trial"], component: page(() => import("./pages/trial"), "TrialAlone") },
  {
    paths: ["/models"],
    component: page(() => import("./pages/models"), "Models"),
    place: { group: "work", name: "Models", key: "m", icon: <Box />, also: /^\/models\b/ },
  },
  { paths: ["/models/:name"], component: page(() => import("./pages/models"), "ModelPage") },
  {
    paths: ["/jobs", "/resourcepool/:pool/:tab?"],
    component: page(() => import("./pages/queue"), "Queue"),
    place: { group: "cluster", name: "Queue", key: "q", icon: <ListOrdered />, also: /^\/(jobs|resourcepool)\b/, dock: "Queue" },
  },
  {
    paths: ["/clusters"],
    component: page(() => import("./pages/cluster"), "Cluster"),
    place: { group: "cluster", name: "Agents", key: "c", icon: <Server />, dock: "Agents" },
  },
  {
    paths: ["/tasks"],
    component: page(() => import("./pages/tasks"), "Tasks"),
    place: {
      group: "cluster",
      name: "Tasks",
      key: "t",
      icon: <SquareTerminal />,
      also: /^\/(tasks|commands|tensorboards|notebooks|shells)\b/,
    },
  },
  { paths: ["/:kind/:id/logs"], component: page(() => import("./pages/tasks"), "TaskLogs") },
  {
    paths: ["/system/events"],
    component: page(() => import("./pages/events"), "Events"),
    place: { group: "cluster", name: "Events", key: "v", icon: <Activity />, also: /^\/system\b/ },
  },
  { paths: ["/system/audit"], component: page(() => import("./pages/audit"), "Audit") },
  { paths: ["/system/components"], component: page(() => import("./ui/gallery"), "Gallery") },
  {
    paths: ["/workspaces"],
    component: page(() => import("./pages/workspaces"), "Workspaces"),
    place: { group: "more", name: "Workspaces", key: "w", icon: <FolderTree />, also: /^\/workspaces\b/ },
  },
  { paths: ["/workspaces/:id"], component: page(() => import("./pages/workspaces"), "WorkspacePage") },
  {
    paths: ["/settings/:part?", "/admin"],
    component: page(() => import("./pages/settings"), "Settings"),
    place: { group: "self", name: "Settings", key: "s", icon: <Settings />, also: /^\/(settings|admin)\b/ },
  },
  { paths: ["*"], component: page(() => import("./shell/missing"), "Missing") },
];

export const Login = page(() => import("./pages/login"), "Login");

const inGroup = (group: Place["group"]): To[] =>
  PAGES.flatMap(({ paths, place }) => (place?.group === group ? [{ ...place, path: paths[0]!.split("/:")[0]! }] : []));

export const WORK = inGroup("work");
export const CLUSTER = inGroup("cluster");
export const SELF = inGroup("self");
export const ALL = [...WORK, ...CLUSTER, ...inGroup("more"), ...SELF];

export const isThere = (to: To, path: string) => path === to.path || (to.also?.test(path) ?? false);
