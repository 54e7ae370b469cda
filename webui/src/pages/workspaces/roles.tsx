import { UserPlus } from "lucide-react";
import { type FormEvent, useState } from "react";

import { useData, useMe } from "../../api/data";
import { useRights } from "../../api/rights";
import type { User } from "../../api/types";
import { Button } from "../../ui/button";
import { Card, Note } from "../../ui/card";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { Select } from "../../ui/field";
import { Loaded } from "../../ui/status";
import { Table } from "../../ui/table";
import { Avatar } from "../../ui/text";
import { useAct } from "../settings/change";
import type { Group } from "../settings/groups";

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
interface Told {
  groups: { groupId: number; name: string }[];
  usersAssignedDirectly: User[];
  assignments: Held[];
}
interface Grant {
  kind: "user" | "group";
  id: number;
  name: string;
  role: Role;
}

const TOPICS = ["rights", "users"];

/** The roles assigned in a workspace. If roles are not enforced yet, this prepares for it. */
export function WorkspaceRoles({ id }: { id: number }) {
  const answer = useData<Told>(`roles/workspace/${id}`, TOPICS);
  const not = useRights()("assign_roles", { workspaceId: id });
  const counts = useMe().data?.access?.rbac;
  const [giving, setGiving] = useState(false);
  const act = useAct();
  const take = (grant: Grant) =>
    void act(
      "POST",
      "roles/remove-assignments",
      assignment(grant.kind, grant.id, grant.role.roleId, id),
      `${grant.name} is no longer ${grant.role.name} here`,
    );
  return (
    <Card
      title="Members"
      flush
      more={
        <Button small icon={<UserPlus />} not={not} onClick={() => setGiving(true)}>
          Assign a role
        </Button>
      }
    >
      {counts === false && (
        <div className="pad">
          <Note kind="info">Everyone can see everything here. Roles take effect when the cluster runs with STEADFAST_AUTHZ=rbac.</Note>
        </div>
      )}
      <Loaded answer={answer}>
        {(access) => {
          const grants = listed(access);
          return grants.length ? (
            <Table
              name="Roles in this workspace"
              rows={grants}
              id={(grant) => `${grant.kind} ${grant.id} ${grant.role.roleId}`}
              columns={[
                {
                  id: "who",
                  head: "Who",
                  name: true,
                  value: (grant) => grant.name,
                  cell: (grant) => (
                    <span className="cut" title={grant.name}>
                      <Avatar name={grant.name} plain small /> {grant.kind === "group" ? `group ${grant.name}` : grant.name}
                    </span>
                  ),
                },
                { id: "role", head: "Role", width: 180, small: true, cell: (grant) => grant.role.name, value: (grant) => grant.role.name },
              ]}
              actWidth={110}
              act={(grant) => (
                <Button small not={not} onClick={() => take(grant)}>
                  Revoke
                </Button>
              )}
            />
          ) : (
            <p className="pad ink2">No roles are assigned here. Cluster-wide roles also apply.</p>
          );
        }}
      </Loaded>
      {giving && <GiveRole workspace={id} onClose={() => setGiving(false)} />}
    </Card>
  );
}

function GiveRole({ workspace, onClose }: { workspace: number; onClose: () => void }) {
  const users = useData<{ users: User[] }>("users", ["users"]);
  const groups = useData<{ groups: Group[] }>("groups", TOPICS);
  const roles = useData<{ roles: Role[] }>("roles");
  const act = useAct();
  const who = [
    ...(groups.data?.groups.map(({ group }) => [`group ${group.groupId}`, `group ${group.name}`] as const) ?? []),
    ...(users.data?.users.filter((user) => user.active).map((user) => [`user ${user.id}`, user.username] as const) ?? []),
  ];
  const give = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [kind, id] = String(form.get("who")).split(" ") as ["user" | "group", string];
    if (await act("POST", "roles/add-assignments", assignment(kind, Number(id), Number(form.get("role")), workspace), "Assigned the role"))
      onClose();
  };
  return (
    <Dialog title="Assign a role" text="Applies to this workspace and all of its projects." onClose={onClose}>
      <form onSubmit={(event) => void give(event)}>
        <Select above label="Who" name="who" options={who} />
        <Select
          above
          label="Role"
          name="role"
          options={
            roles.data?.roles.filter((role) => role.scopeTypeMask.workspace).map((role) => [String(role.roleId), role.name] as const) ?? []
          }
        />
        <DialogFoot onClose={onClose}>Assign</DialogFoot>
      </form>
    </Dialog>
  );
}

const assignment = (kind: "user" | "group", id: number, roleId: number, workspace: number) => ({
  [`${kind}RoleAssignments`]: [{ [`${kind}Id`]: id, roleAssignment: { role: { roleId }, scopeWorkspaceId: workspace } }],
});

function listed(access: Told): Grant[] {
  return access.assignments.flatMap(({ role, userRoleAssignments, groupRoleAssignments }) => [
    ...groupRoleAssignments.map(({ groupId: id }) => ({
      kind: "group" as const,
      id,
      name: access.groups.find((group) => group.groupId === id)?.name ?? String(id),
      role,
    })),
    ...userRoleAssignments.map(({ userId: id }) => ({
      kind: "user" as const,
      id,
      name: access.usersAssignedDirectly.find((user) => user.id === id)?.username ?? String(id),
      role,
    })),
  ]);
}
