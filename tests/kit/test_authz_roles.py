"""Owners and roles: what a grant permits, and where it stops to count."""

from __future__ import annotations

import msgspec
import pytest

from det_contracts import commands
from det_contracts.events import gateway
from det_contracts.problems import Refused
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit.authz.commands import COMMANDS
from services.kit.authz.permissions import (
    OF_ROLE,
)
from services.kit.rules import Call
from services.kit.testing import Fold
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from tests.gateway import stories as story
from tests.kit.test_authz import ok, refused, user


def by_roles(rules, *grants):
    """The state of an owner that has seen Olga's experiment 1 in workspace 2, and what Egon was given."""
    filed = msgspec.structs.replace(story.created(1, user="olga"), project_id=2)
    place = {"workspace_id": 2, "owner": "olga", "reason": "made"}
    history = (
        user(3, "olga"),
        user(4, "egon"),
        gateway.WorkspaceSet(name="Vision", **place),
        gateway.ProjectSet(project_id=2, name="Digits", **place),
        filed,
        gateway.AuthzSet("rbac", "tried"),
        gateway.RolesSet("user-4", grants, "given by admin"),
    )
    return Fold(rules).apply(*history)


KILL = commands.ChangeExperiment(experiment_id=1, action="kill", user="egon")


@pytest.mark.parametrize(
    ("grants", "answer"),
    [
        ((), "experiment '1' not found"),
        ((gateway.Grant("Editor", 3),), "experiment '1' not found"),
        ((gateway.Grant("WorkspaceCreator"),), "experiment '1' not found"),
        ((gateway.Grant("A role of a later version", 2),), "experiment '1' not found"),
        (
            (gateway.Grant("Viewer", 2),),
            "lacks a role: EditorRestricted or Editor or WorkspaceAdmin or Clus",
        ),
        ((gateway.Grant("Viewer"),), "in workspace 2"),
    ],
)
def test_an_owner_refuses_whose_role_does_not_permit_it(grants, answer):
    with pytest.raises(Refused, match=answer):
        ok(SEARCHER, by_roles(SEARCHER, *grants).state, KILL)


@pytest.mark.parametrize("grant", [gateway.Grant("EditorRestricted", 2), gateway.Grant("Editor")])
def test_an_owner_accepts_commands_that_the_role_permits(grant):
    ok(SEARCHER, by_roles(SEARCHER, grant).state, KILL)


def test_what_a_group_holds_its_members_hold_as_long_as_they_are_in_it():
    fold = by_roles(SEARCHER).apply(gateway.RolesSet("group-2", (gateway.Grant("Editor", 2),), "given"))
    for members in ((), (3,)):
        fold.apply(gateway.GroupSet(group_id=2, name="crew", members=members, reason="changed"))
        with pytest.raises(Refused, match="not found"):
            ok(SEARCHER, fold.state, KILL)
        fold.apply(gateway.GroupSet(group_id=2, name="crew", members=(*members, 4), reason="changed"))
        ok(SEARCHER, fold.state, KILL)
    fold.apply(gateway.GroupRemoved(2, "removed"))
    with pytest.raises(Refused, match="not found"):
        ok(SEARCHER, fold.state, KILL)


def test_a_thing_takes_the_rights_of_where_it_goes():
    fold = by_roles(SEARCHER, gateway.Grant("Editor", 2))
    ok(SEARCHER, fold.state, KILL)
    project = {"project_id": 2, "workspace_id": 3, "name": "Digits", "owner": "olga", "reason": "moved"}
    fold.apply(gateway.ProjectSet(**project))
    with pytest.raises(Refused, match="not found"):
        ok(SEARCHER, fold.state, KILL)


def test_an_administrator_and_whoever_is_back_in_basic_mode_need_no_role():
    fold = by_roles(SEARCHER).apply(user(4, "egon", admin=True))
    ok(SEARCHER, fold.state, KILL)
    fold.apply(user(4, "egon"), gateway.AuthzSet("basic", "tried"))
    assert "belongs to user 'olga'" in refused(SEARCHER, fold.state, KILL)


def test_a_script_whose_owner_lost_the_role_is_heard_to_its_end():
    fold = by_roles(SCHEDULER).apply(story.worker_here(), story.run_requested(1))
    leave = commands.AskToLeave(allocation_id="1.r1.1", user="olga")
    with pytest.raises(Refused, match="not found"):
        SCHEDULER.commands[commands.AskToLeave](fold.state, leave, Call("c", 0.0))
    SCHEDULER.commands[commands.AskToLeave](fold.state, leave, Call("c", 0.0, script="1.r1.1"))
    with pytest.raises(Refused, match="does not belong"):
        SCHEDULER.commands[commands.AskToLeave](fold.state, leave, Call("c", 0.0, script="1.r2.1"))


def test_tasks_and_models_are_of_their_workspace():
    submit = commands.SubmitTask(
        task_id="c", kind="COMMAND", user="egon", name="c", config={}, slots=0, pool="default", workspace_id=2
    )
    ok(SCHEDULER, by_roles(SCHEDULER, gateway.Grant("Editor", 2)).state, submit)
    assert "lacks a role" in refused(
        SCHEDULER, by_roles(SCHEDULER, gateway.Grant("EditorRestricted", 2)).state, submit
    )
    model = commands.SetModel(name="m", workspace_id=2, user="egon")
    ok(CHECKPOINTS, by_roles(CHECKPOINTS, gateway.Grant("EditorRestricted", 2)).state, model)
    assert "lacks a role" in refused(
        CHECKPOINTS, by_roles(CHECKPOINTS, gateway.Grant("Viewer", 2)).state, model
    )


def test_nobody_gives_more_than_they_have():
    fold = by_roles(GATEWAY, gateway.Grant("WorkspaceAdmin", 2))

    def give(role, space=0):
        assignment = commands.Assignment("user-3", gateway.Grant(role, space))
        return commands.AssignRoles(add=(assignment,), user="egon")

    permissions = {request.permission for request in COMMANDS["AssignRoles"](give("Editor", 2))}
    assert permissions == OF_ROLE["Editor"] | {"assign_roles"}, "each permission of the role, there"
    for role in ("Viewer", "Editor", "WorkspaceAdmin"):
        ok(GATEWAY, fold.state, give(role, 2))
        assert "lacks a role" in refused(GATEWAY, fold.state, give(role))
    assert "lacks a role" in refused(GATEWAY, fold.state, give("ClusterAdmin"))
    with pytest.raises(Refused, match="workspace '1' not found"):
        ok(GATEWAY, fold.state, give("Viewer", 1))
    assert "lacks a role" in refused(
        GATEWAY, fold.state, commands.SetGroup(name="crew", add=(4,), user="egon")
    )
