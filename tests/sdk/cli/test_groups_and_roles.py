"""`det user-group` and `det rbac`."""

import pytest

GROUP = {"groupId": 5, "name": "crew", "users": []}
VIEWER = {
    "roleId": 4,
    "name": "Viewer",
    "permissions": [],
    "scopeTypeMask": {"cluster": True, "workspace": True},
}
HELD = {"role": VIEWER, "scopeCluster": False, "scopeWorkspaceId": 2}


@pytest.fixture
def people(master):
    master.answer("GET", "/api/v1/users/ann/by-username", {"user": {"id": 7, "username": "ann"}})
    page = {
        "groups": [{"group": {"groupId": 5, "name": "crew"}, "numMembers": 1}],
        "pagination": {"total": 1},
    }
    master.answer("POST", "/api/v1/groups/search", page)
    master.answer("POST", "/api/v1/groups", {"group": GROUP})
    for method in ("GET", "PUT"):
        master.answer(method, "/api/v1/groups/5", {"group": GROUP})
    master.answer("DELETE", "/api/v1/groups/5", {})
    master.answer("POST", "/api/v1/roles/search", {"roles": [VIEWER], "pagination": {"total": 1}})
    for verb in ("add", "remove"):
        master.answer("POST", f"/api/v1/roles/{verb}-assignments", {})
    space = {"id": 2, "name": "Vision"}
    master.answer("GET", "/api/v1/workspaces", {"workspaces": [space], "pagination": {"total": 1}})
    master.answer("GET", "/api/v1/workspaces/2", {"workspace": space})
    return master


def test_a_group_is_made_with_members(people, det):
    assert (
        "crew and ID 5 created\nann was added" in det("user-group", "create", "crew", "--add-user", "ann").out
    )
    assert people.calls_to("POST", "/api/v1/groups")[0].json == {"name": "crew", "addUsers": [7]}


def test_members_come_and_go_and_names_change(people, det):
    assert "username ann and ID 7" in det("user-group", "add-user", "crew", "ann").out
    assert det("user-group", "remove-user", "crew", "ann").status == 0
    assert "from crew to team" in det("user-group", "change-name", "crew", "team").out
    assert [call.json for call in people.calls_to("PUT", "/api/v1/groups/5")] == [
        {"addUsers": [7]},
        {"removeUsers": [7]},
        {"name": "team"},
    ]


def test_groups_are_listed_and_removed(people, det):
    assert "crew" in det("user-group", "list", "--groups-user-belongs-to", "ann").out
    assert people.calls_to("POST", "/api/v1/groups/search")[0].json["userId"] == 7
    assert "ID 5 deleted" in det("user-group", "delete", "crew", "--yes").out
    people.answer("POST", "/api/v1/groups/search", {"groups": []})
    assert "could not find user group name crew" in det("user-group", "describe", "crew").err


def test_roles_are_given_and_taken_back(people, det):
    assert "globally" in det("rbac", "assign-role", "Viewer", "-u", "ann").out
    assert "to workspace Vision" in det("rbac", "unassign-role", "Viewer", "-g", "crew", "-w", "Vision").out
    assert people.calls_to("POST", "/api/v1/roles/add-assignments")[0].json == {
        "userRoleAssignments": [
            {"userId": 7, "roleAssignment": {"role": {"roleId": 4}, "scopeCluster": True}}
        ]
    }
    assignment = {"role": {"roleId": 4}, "scopeWorkspaceId": 2}
    assert people.calls_to("POST", "/api/v1/roles/remove-assignments")[0].json == {
        "groupRoleAssignments": [{"groupId": 5, "roleAssignment": assignment}]
    }


@pytest.mark.parametrize("words", [["Viewer"], ["Viewer", "-u", "ann", "-g", "crew"]])
def test_a_role_is_for_one_user_or_one_group(people, det, words):
    done = det("rbac", "assign-role", *words)
    assert (done.status, "exactly one" in done.err) == (1, True)


def test_roles_are_shown_with_who_holds_them_where(people, det):
    payload = {
        "role": VIEWER,
        "userRoleAssignments": [],
        "groupRoleAssignments": [{"groupId": 5, "roleAssignment": HELD}],
    }
    people.answer("GET", "/api/v1/roles/search/by-user/7", {"roles": [payload]})
    people.answer("POST", "/api/v1/roles/search/by-ids", {"roles": [payload]})
    scope = [{"roleId": 4, "scopeWorkspaceIds": [2], "scopeCluster": False}]
    summary = {"roles": [VIEWER], "assignments": scope}
    people.answer("GET", "/api/v1/roles/search/by-group/5", summary)
    people.answer("GET", "/api/v1/permissions/summary", summary)
    words = (["list-users-roles", "ann"], ["list-groups-roles", "crew"], ["describe-role", "Viewer"])
    for verb in (*words, ["my-permissions"]):
        done = det("rbac", *verb)
        assert (done.status, "Viewer" in done.out, "Vision" in done.out) == (0, True, True), done
    assert "Viewer" in det("rbac", "list-roles").out
