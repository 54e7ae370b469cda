/**
 * What the user may do, as the server tells it: every action asks here before it is offered, so that none looks
 * possible that the server would refuse.
 */

import { useCallback } from "react";

import { useMe } from "./data";
import type { Access, User } from "./types";

/** Permissions of docs/rights.md. */
export type Right =
  | "create"
  | "create_task"
  | "edit"
  | "control"
  | "control_task"
  | "delete"
  | "create_project"
  | "edit_project"
  | "control_project"
  | "create_workspace"
  | "control_workspace"
  | "read_log"
  | "assign_roles"
  | "administer_users"
  | "administer_cluster";

/** What is acted on: whose it is and where it lies. Nothing is given for the cluster as a whole. */
export interface Owned {
  username?: string;
  userId?: number | null;
  workspaceId?: number;
}
/** The owner's part is not known or does not count, and any workspace will do: for what is yet to be created. */
export const ANYWHERE = "anywhere";

/** Why the user may not do it; empty if they may. It reads as the end of a menu entry, and begins a tooltip. */
export type WhyNot = (right: Right, of?: Owned | typeof ANYWHERE) => string;

export function whyNot({ user, access }: { user: User; access: Access }, right: Right, of?: Owned | typeof ANYWHERE): string {
  if (access.everywhere.includes(right)) return "";
  const own = access.own.includes(right);
  if (of === ANYWHERE)
    return own || Object.values(access.workspaces).some((rights) => rights.includes(right)) ? "" : "your roles do not permit this";
  if (own && of && (of.userId === user.id || of.username === user.username)) return "";
  if (of?.workspaceId !== undefined && access.workspaces[of.workspaceId]?.includes(right)) return "";
  if (access.rbac) return `your roles do not permit this${of?.workspaceId === undefined ? "" : " here"}`;
  return own && of ? `only ${of.username || "its owner"} and administrators may` : "only administrators may";
}

/** Until the server has told the user's permissions, nothing is held back: it decides about every request anyway. */
export function useRights(): WhyNot {
  const { data } = useMe();
  // A gateway of the release before this one tells nothing.
  return useCallback<WhyNot>((right, of) => (data?.access ? whyNot(data, right, of) : ""), [data]);
}
