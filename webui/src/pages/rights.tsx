import type { FormEvent } from "react";

import { useChange, useData, useMe } from "../api/data";
import type { User } from "../api/types";
import { Card, Empty, Failure, Loaded } from "../parts/basics";
import { Popup } from "../parts/popup";
import { Rows } from "../parts/rows";

interface Group {
  group: { groupId: number; name: string };
  numMembers: number;
}
interface Role {
  roleId: number;
  name: string;
  scopeTypeMask: { cluster: boolean; workspace: boolean };
}
interface Held {
  role: Role;
  userRoleAssignments: { userId: number }[];
  groupRoleAssignments: { groupId: number }[];
}
interface Grant {
  kind: "user" | "group";
  id: number;
  name: string;
  role: Role;
}

const TOPICS = ["rights", "users"];
const only = "Only administrators may";

/** Groups of users: who may is told by the roles that they hold. */
export function Groups({ admin }: { admin: boolean }) {
  const found = useData<{ groups: Group[] }>("groups", TOPICS);
  const change = useChange();
  const make = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    change.mutate({ method: "POST", path: "groups", body: { name: new FormData(event.currentTarget).get("name") } });
    event.currentTarget.reset();
  };
  return (
    <Card title="Groups">
      {change.error ? <Failure error={change.error} /> : null}
      <Loaded found={found}>
        {({ groups }) =>
          groups.length ? (
            <Rows
              name="Groups"
              rows={groups}
              id={(one) => one.group.groupId}
              columns={[
                { head: "Group", cell: (one) => one.group.name },
                { head: "Members", num: true, cell: (one) => one.numMembers },
              ]}
              actions={(one) => (
                <>
                  <Popup name="Members" label={`Members of ${one.group.name}`}>
                    <Members id={one.group.groupId} admin={admin} />
                  </Popup>
                  <button
                    type="button"
                    disabled={!admin}
                    title={admin ? "" : only}
                    onClick={() => change.mutate({ method: "DELETE", path: `groups/${one.group.groupId}` })}
                  >
                    Delete
                  </button>
                </>
              )}
            />
          ) : (
            <Empty command="det user-group create NAME">There are none. A group's members hold its roles.</Empty>
          )
        }
      </Loaded>
      {admin && (
        <form className="controls" onSubmit={make}>
          <label>
            new group <input name="name" required autoComplete="off" />
          </label>
          <button type="submit">Make</button>
        </form>
      )}
    </Card>
  );
}

function Members({ id, admin }: { id: number; admin: boolean }) {
  const path = `groups/${id}`;
  const found = useData<{ group: { users: User[] } }>(path, TOPICS);
  const users = useData<{ users: User[] }>("users", ["users"]);
  const change = useChange();
  const put = (body: object) => change.mutate({ method: "PUT", path, body });
  const add = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    put({ addUsers: [Number(new FormData(event.currentTarget).get("user"))] });
  };
  return (
    <Loaded found={found}>
      {({ group }) => (
        <>
          {change.error ? <Failure error={change.error} /> : null}
          <ul className="plain">
            {group.users.map((one) => (
              <li key={one.id}>
                {one.username}{" "}
                {admin && (
                  <button type="button" onClick={() => put({ removeUsers: [one.id] })}>
                    Remove {one.username}
                  </button>
                )}
              </li>
            ))}
            {!group.users.length && <li className="soft">Nobody yet.</li>}
          </ul>
          {admin && (
            <form className="controls" onSubmit={add}>
              <label>
                user{" "}
                <select name="user">
                  {users.data?.users
                    .filter((one) => one.active && !group.users.some((member) => member.id === one.id))
                    .map((one) => (
                      <option key={one.id} value={one.id}>
                        {one.username}
                      </option>
                    ))}
                </select>
              </label>
              <button type="submit">Add</button>
            </form>
          )}
        </>
      )}
    </Loaded>
  );
}

/** Who was given which role in a workspace. Where roles do not count yet, this prepares for it. */
export function WorkspaceRoles({ id }: { id: number }) {
  const me = useMe();
  const found = useData<{ groups: { groupId: number; name: string }[]; usersAssignedDirectly: User[]; assignments: Held[] }>(
    `roles/workspace/${id}`,
    TOPICS,
  );
  const summary = useData<{ assignments: { roleId: number; scopeWorkspaceIds: number[]; scopeCluster: boolean }[]; roles: Role[] }>(
    "permissions/summary",
    TOPICS,
  );
  const change = useChange();
  const master = useData<{ rbacEnabled: boolean }>("master");
  const gives = summary.data?.assignments.some(
    (one) =>
      summary.data?.roles.find((role) => role.roleId === one.roleId)?.name === "WorkspaceAdmin" &&
      (one.scopeCluster || one.scopeWorkspaceIds.includes(id)),
  );
  const may = Boolean(me.data?.user.admin || (master.data?.rbacEnabled && gives));
  const take = (one: Grant) =>
    change.mutate({ method: "POST", path: "roles/remove-assignments", body: assignment(one.kind, one.id, one.role.roleId, id) });
  return (
    <Card title="Who may">
      {change.error ? <Failure error={change.error} /> : null}
      {master.data && !master.data.rbacEnabled && (
        <p className="soft">Here everybody sees everything: roles count once the cluster is started with STEADFAST_AUTHZ=rbac.</p>
      )}
      <Loaded found={found}>
        {(told) => {
          const grants = listed(told);
          return grants.length ? (
            <Rows
              name="Roles in this workspace"
              rows={grants}
              id={(one) => `${one.kind} ${one.id} ${one.role.roleId}`}
              columns={[
                { head: "Who", cell: (one) => (one.kind === "group" ? `group ${one.name}` : one.name) },
                { head: "Role", cell: (one) => one.role.name },
              ]}
              actions={(one) => (
                <button
                  type="button"
                  disabled={!may}
                  title={may ? "" : "Only whoever administers the workspace may"}
                  onClick={() => take(one)}
                >
                  Take back
                </button>
              )}
            />
          ) : (
            <p className="soft">Nobody was given a role here; whoever has one for the whole cluster has it here, too.</p>
          );
        }}
      </Loaded>
      {may && (
        <Popup name="Give a role">
          <GiveRole workspace={id} />
        </Popup>
      )}
    </Card>
  );
}

function GiveRole({ workspace }: { workspace: number }) {
  const users = useData<{ users: User[] }>("users", ["users"]);
  const groups = useData<{ groups: Group[] }>("groups", TOPICS);
  const roles = useData<{ roles: Role[] }>("roles");
  const change = useChange();
  const give = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [kind, id] = String(form.get("who")).split(" ") as ["user" | "group", string];
    change.mutate({
      method: "POST",
      path: "roles/add-assignments",
      body: assignment(kind, Number(id), Number(form.get("role")), workspace),
    });
  };
  return (
    <form className="form" onSubmit={give}>
      <label>
        Who{" "}
        <select name="who">
          {groups.data?.groups.map((one) => (
            <option key={`group ${one.group.groupId}`} value={`group ${one.group.groupId}`}>
              group {one.group.name}
            </option>
          ))}
          {users.data?.users
            .filter((one) => one.active)
            .map((one) => (
              <option key={`user ${one.id}`} value={`user ${one.id}`}>
                {one.username}
              </option>
            ))}
        </select>
      </label>
      <label>
        Role{" "}
        <select name="role">
          {roles.data?.roles
            .filter((one) => one.scopeTypeMask.workspace)
            .map((one) => (
              <option key={one.roleId} value={one.roleId}>
                {one.name}
              </option>
            ))}
        </select>
      </label>
      <button type="submit">Give</button>
      {change.error ? <Failure error={change.error} /> : null}
    </form>
  );
}

const assignment = (kind: "user" | "group", id: number, roleId: number, workspace: number) => ({
  [`${kind}RoleAssignments`]: [{ [`${kind}Id`]: id, roleAssignment: { role: { roleId }, scopeWorkspaceId: workspace } }],
});

function listed(told: { groups: { groupId: number; name: string }[]; usersAssignedDirectly: User[]; assignments: Held[] }): Grant[] {
  return told.assignments.flatMap(({ role, userRoleAssignments, groupRoleAssignments }) => [
    ...groupRoleAssignments.map(({ groupId: id }) => ({
      kind: "group" as const,
      id,
      name: told.groups.find((one) => one.groupId === id)?.name ?? String(id),
      role,
    })),
    ...userRoleAssignments.map(({ userId: id }) => ({
      kind: "user" as const,
      id,
      name: told.usersAssignedDirectly.find((one) => one.id === id)?.username ?? String(id),
      role,
    })),
  ]);
}
