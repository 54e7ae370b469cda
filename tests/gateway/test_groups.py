"""Groups of users, and roles that are given to users and groups, as events (docs/guides/rights.md)."""

from __future__ import annotations

import pytest

from det_contracts.events.gateway import AuthzSet, GroupRemoved, GroupSet, RolesSet
from services.kit.authz.permissions import ROLE_IDS, ROLES
from services.kit.authz.roles import grants_held_by, groups_of
from services.people.groups import holders_in

GROUPS = "/api/v1/groups"


@pytest.fixture
def admin(gateway):
    gateway.log_in("admin")
    for name in ("ann", "ben"):
        gateway.post("/api/v1/users", {"user": {"username": name, "active": True}})
    return gateway


def make(admin, name="team", users=()):
    return admin.post(GROUPS, {"name": name, "addUsers": list(users)})["group"]


def give(admin, role, *, user=0, group=0, workspace=0, verb="add", status=200):
    scope = {"scopeWorkspaceId": workspace} if workspace else {"scopeCluster": True}
    assignment = {"roleAssignment": {"role": {"roleId": ROLE_IDS[role]}, **scope}}
    body = {
        "userRoleAssignments": [{"userId": user, **assignment}] if user else [],
        "groupRoleAssignments": [{"groupId": group, **assignment}] if group else [],
    }
    answer = admin.send("POST", f"/api/v1/roles/{verb}-assignments", body)
    assert answer.status_code == status, answer.text
    return answer.text


def space(admin, name="Vision"):
    return admin.post("/api/v1/workspaces", {"name": name})["workspace"]["id"]


def test_a_group_is_made_and_changed(admin):
    made = make(admin, users=[3])
    assert (made["groupId"], made["name"], [user["username"] for user in made["users"]]) == (
        2,
        "team",
        ["ann"],
    )
    changed = admin.send("PUT", f"{GROUPS}/2", {"name": "crew", "addUsers": [4], "removeUsers": [3]}).json()
    assert (changed["group"]["name"], [user["id"] for user in changed["group"]["users"]]) == ("crew", [4])
    assert admin.get(f"{GROUPS}/2") == changed
    before = len(admin.events_of(GroupSet))
    assert admin.send("PUT", f"{GROUPS}/2", {"name": "crew", "addUsers": [4]}).json() == changed
    assert len(admin.events_of(GroupSet)) == before, "what is so already is no event"


def test_groups_are_found_by_name_and_by_member(admin):
    make(admin, "team", [3])
    make(admin, "crew", [3, 4])
    page = admin.post(f"{GROUPS}/search", {"offset": 0, "limit": 500})
    assert [(row["group"]["name"], row["numMembers"]) for row in page["groups"]] == [
        ("team", 1),
        ("crew", 2),
    ]
    assert page["pagination"]["total"] == 2
    for by, names in (({"name": "crew"}, ["crew"]), ({"userId": 3}, ["team", "crew"]), ({"userId": 2}, [])):
        groups = admin.post(f"{GROUPS}/search", {"limit": 5, **by})["groups"]
        assert [row["group"]["name"] for row in groups] == names


def test_names_and_members_are_checked(admin):
    make(admin)
    assert "a group named" in admin.refused(409, "POST", GROUPS, {"name": "TEAM"})
    for name in ("", " ", "a\nb", "x" * 129):
        assert "needs a name" in admin.refused(400, "POST", GROUPS, {"name": name})
    assert "user '9' not found" in admin.refused(404, "POST", GROUPS, {"name": "x", "addUsers": [9]})
    assert "at once" in admin.refused(400, "PUT", f"{GROUPS}/2", {"addUsers": [3], "removeUsers": [3]})
    for method, body in (("GET", None), ("PUT", {}), ("DELETE", None)):
        assert "group '7' not found" in admin.refused(404, method, f"{GROUPS}/7", body)


def test_a_group_is_for_administrators_to_change(admin):
    make(admin, users=[3])
    admin.log_in("ann")
    assert admin.get(f"{GROUPS}/2")["group"]["name"] == "team"
    for method, path in (("POST", GROUPS), ("PUT", f"{GROUPS}/2"), ("DELETE", f"{GROUPS}/2")):
        assert "not an administrator" in admin.refused(403, method, path, {"name": "x"})
    assert "not an administrator" in give(admin, "Viewer", user=3, status=403)


def test_a_group_that_goes_takes_its_roles_along_and_its_id_is_not_given_again(admin):
    make(admin, users=[3])
    give(admin, "Viewer", group=2)
    assert admin.send("DELETE", f"{GROUPS}/2").status_code == 200
    state = admin.catalogue.state
    assert (state.groups, state.roles, groups_of(state, 3), list(holders_in(state, 0))) == ({}, {}, (), [])
    assert [event.group_id for event in admin.events_of(GroupRemoved)] == [2]
    assert make(admin)["groupId"] == 3


def test_every_role_is_listed_with_what_it_permits(admin):
    roles = admin.post("/api/v1/roles/search", {"limit": 499})["roles"]
    assert {role["name"] for role in roles} == set(ROLES)
    viewer = next(role for role in roles if role["name"] == "Viewer")
    assert {permission["name"].split()[0] for permission in viewer["permissions"]} == {"view"}
    here = admin.post("/api/v1/roles/search/by-assignability", {"workspaceId": 1})["roles"]
    assert {role["name"] for role in roles} - {role["name"] for role in here} == {
        "ClusterAdmin",
        "WorkspaceCreator",
    }


def test_roles_are_given_and_taken_back(admin):
    here = space(admin)
    make(admin, users=[3])
    give(admin, "Editor", group=2, workspace=here)
    give(admin, "Viewer", user=3)
    held_roles = admin.get("/api/v1/roles/search/by-user/3")["roles"]
    assert [(row["role"]["name"], len(row["groupRoleAssignments"])) for row in held_roles] == [
        ("Viewer", 0),
        ("Editor", 1),
    ]
    of_group = admin.get("/api/v1/roles/search/by-group/2")
    assert of_group["assignments"] == [{"roleId": 5, "scopeWorkspaceIds": [here], "scopeCluster": False}]
    there = admin.get(f"/api/v1/roles/workspace/{here}")
    assert [group["name"] for group in there["groups"]] == ["team"]
    editors = admin.post("/api/v1/roles/search/by-ids", {"roleIds": [5]})["roles"]
    assert [assignment["groupId"] for assignment in editors[0]["groupRoleAssignments"]] == [2]
    admin.log_in("ann")
    mine = admin.get("/api/v1/permissions/summary")
    assert {role["name"] for role in mine["roles"]} == {"Viewer", "Editor"}
    admin.log_in("admin")
    give(admin, "Editor", group=2, workspace=here, verb="remove")
    assert grants_held_by(admin.catalogue.state, "group-2") == ()
    assert len(admin.events_of(RolesSet)) == 3
    give(admin, "Editor", group=2, workspace=here, verb="remove")
    assert len(admin.events_of(RolesSet)) == 3, "what is so already is no event"


def test_what_cannot_be_given_is_refused_whole(admin):
    here = space(admin)
    assert "whole cluster" in give(admin, "WorkspaceCreator", user=3, workspace=here, status=400)
    assert "workspace '9' not found" in give(admin, "Viewer", user=3, workspace=9, status=404)
    assert "group '9' not found" in give(admin, "Viewer", group=9, status=404)
    both = {"role": {"roleId": 4}, "scopeCluster": True, "scopeWorkspaceId": 1}
    body = {"userRoleAssignments": [{"userId": 3, "roleAssignment": both}]}
    assert "scopeCluster" in admin.refused(400, "POST", "/api/v1/roles/add-assignments", body)
    body["userRoleAssignments"][0]["roleAssignment"] = {"role": {"roleId": 99}}
    assert "role '99' not found" in admin.refused(404, "POST", "/api/v1/roles/add-assignments", body)
    assert admin.events_of(RolesSet) == []


def test_an_administrator_holds_clusteradmin_and_the_other_way_round(admin):
    held_roles = admin.get("/api/v1/roles/search/by-user/1")["roles"]
    assert [row["role"]["name"] for row in held_roles] == ["ClusterAdmin"]
    give(admin, "ClusterAdmin", user=3)
    assert admin.get("/api/v1/users/3")["user"]["admin"] is True
    assert admin.events_of(RolesSet) == [], "one fact, told once"
    give(admin, "ClusterAdmin", user=1, verb="remove")
    assert admin.get("/api/v1/users/1")["user"]["admin"] is False


def test_somebody_stays_clusteradmin(admin):
    assert "no active administrator" in give(admin, "ClusterAdmin", user=1, verb="remove", status=400)
    give(admin, "ClusterAdmin", user=3)
    grant = {"roleAssignment": {"role": {"roleId": 1}, "scopeCluster": True}}
    both = {"userRoleAssignments": [{"userId": 1, **grant}, {"userId": 3, **grant}]}
    admin.refused(400, "POST", "/api/v1/roles/remove-assignments", both)
    assert [admin.get(f"/api/v1/users/{id}")["user"]["admin"] for id in (1, 3)] == [True, True]


def test_a_workspace_takes_the_roles_in_it_along(admin):
    here = space(admin)
    make(admin, users=[3])
    give(admin, "Editor", group=2, workspace=here)
    give(admin, "Viewer", group=2)
    assert admin.send("DELETE", f"/api/v1/workspaces/{here}").status_code == 200
    assert [grant.role for grant in grants_held_by(admin.catalogue.state, "group-2")] == ["Viewer"]
    assert list(holders_in(admin.catalogue.state, here)) == []


def test_whoever_makes_a_workspace_administers_it_where_roles_count(admin):
    give(admin, "WorkspaceCreator", user=3)
    admin.apply(AuthzSet("rbac", "tried"))
    admin.log_in("ann")
    here = space(admin)
    assert [grant.role for grant in grants_held_by(admin.catalogue.state, "user-3")] == [
        "WorkspaceAdmin",
        "WorkspaceCreator",
    ]
    give(admin, "Editor", user=4, workspace=here)
    for role in ("ClusterAdmin", "Viewer"):
        assert "lacks a role" in give(admin, role, user=4, status=403)
    admin.log_in("ben")
    assert "lacks a role" in give(admin, "Viewer", user=4, workspace=here, status=403)
