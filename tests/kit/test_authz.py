"""The owner of a fact judges who may command it, whatever its gateway let through (docs/rights.md)."""

from __future__ import annotations

import asyncio
import types
from itertools import pairwise
from typing import ClassVar

import pytest

from det_contracts import commands
from det_contracts.events import gateway
from det_contracts.events.gateway import Grant
from det_contracts.events.searcher import ExperimentDeleted
from det_contracts.problems import Refused
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit.authz import acting
from services.kit.authz.access_check import AccessRequest, Person, Target, access_of, require
from services.kit.authz.commands import COMMANDS, add_access_checks
from services.kit.authz.permissions import (
    ADMINISTRATION,
    API_TYPES,
    EVERYBODY,
    MEANINGS,
    OF_ROLE,
    OWNED,
    PERMISSIONS,
    ROLE_IDS,
    ROLES,
)
from services.kit.bus import BusClient, BusServer
from services.kit.cancellation import cancel_and_wait
from services.kit.rules import Call
from services.kit.testing import Fold
from services.metrics.app import RULES as METRICS
from services.rest_routes.routers import rights_table
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from services.webhooks.app import RULES as WEBHOOKS
from tests.gateway import stories as story

JUDGED = (SEARCHER, SCHEDULER, CHECKPOINTS, WEBHOOKS, GATEWAY)


def user(id, name, **more):
    return gateway.UserSet(user_id=id, username=name, reason="made", **more)


class RightsLookup:
    """Olga's experiment 1; Ann was called Olga once."""

    people: ClassVar = {
        "admin": Person(1, "admin", admin=True),
        "olga": Person(3, "ann"),
        "ann": Person(3, "ann"),
        "egon": Person(4, "egon"),
        "gone": Person(5, "gone", admin=True, active=False),
    }

    def person(self, name):
        return self.people.get(name)

    rbac = False

    def grants(self, user_id):
        return ()

    def target(self, kind, id):
        return Target("olga") if id == 1 else None


def may(name, *request, script=""):
    try:
        require(RightsLookup(), name, [AccessRequest(*request)], script=script)
    except Refused as refusal:
        return str(refusal)
    return "yes"


@pytest.mark.parametrize("permission", sorted(OWNED))
def test_what_is_ones_own_is_for_oneself_and_administrators(permission):
    for name in ("olga", "ann", "admin"):
        assert may(name, permission, "experiment", 1) == "yes"
    for name in ("egon", "nobody at all"):
        assert "belongs to user 'olga'" in may(name, permission, "experiment", 1)
    assert may("egon", permission, "experiment", 2) == "yes", "that there is none is for others to say"


@pytest.mark.parametrize("permission", sorted(ADMINISTRATION))
def test_administration_is_for_administrators_and_never_for_scripts(permission):
    assert may("admin", permission) == "yes"
    assert "not an administrator" in may("ann", permission)
    assert "a script may not" in may("admin", permission, script="1.r1.1")


def test_who_is_not_active_may_nothing():
    for permission in set(PERMISSIONS) - {"anybody", "service"}:
        assert may("gone", permission) == "user 'gone' is not active"


def test_an_account_is_its_users_and_no_scripts():
    assert may("ann", "own_account", "user", 1) == may("admin", "own_account", "user", 1) == "yes"
    assert "not an administrator" in may("egon", "own_account", "user", 1)
    assert "a script may not" in may("ann", "own_account", "user", 1, script="1.r1.1")


def test_every_command_has_a_row_and_every_owner_goes_by_it():
    ruled = {command.__name__ for rules in (*JUDGED, METRICS) for command in rules.commands}
    assert ruled == COMMANDS.keys()
    assert {command.__name__ for command in commands.OWNER_OF} <= ruled
    for rules in JUDGED:
        assert all(hasattr(rule, "__wrapped__") for rule in rules.commands.values()), rules.owner
    for command in METRICS.commands:
        (request,) = COMMANDS[command.__name__](None)
        assert request.permission == "service"


class Roles(RightsLookup):
    """Experiment 1 lies in workspace 5, experiment 2 in workspace 6; Ann edits in 5 and views everything."""

    rbac = True

    def grants(self, user_id):
        return {3: (Grant("Editor", 5), Grant("Viewer"))}.get(user_id, ())

    def target(self, kind, id):
        return {1: Target("olga", 5), 2: Target("egon", 6)}.get(id)


def says_access(lookup, name, permission, target):
    """Whether what a user is told in advance includes this, read as the web UI reads it."""
    permitted = access_of(lookup, name)
    mine = (lookup.person(name) or Person(0, name)).id == (lookup.person(target.owner) or Person(-1, "")).id
    here = permitted.workspaces.get(target.workspace_id, ())
    return permission in permitted.everywhere or (mine and permission in permitted.own) or permission in here


@pytest.mark.parametrize("lookup", [RightsLookup(), Roles()], ids=["by owner", "by roles"])
@pytest.mark.parametrize("name", ["admin", "olga", "ann", "egon"])
def test_what_a_user_is_told_is_what_is_then_allowed(lookup, name):
    for permission in sorted(set(PERMISSIONS) - {"service", "own_account"}):
        kind = "cluster" if permission in ADMINISTRATION | {"create_workspace", "read_log"} else "experiment"
        for id in (1, 2):
            target = lookup.target(kind, id) if kind != "cluster" else Target("")
            if target is None:
                continue
            try:
                require(lookup, name, [AccessRequest(permission, kind, id)])
                allowed = True
            except Refused:
                allowed = False
            assert says_access(lookup, name, permission, target) == allowed, (permission, id)


def test_a_command_without_a_row_cannot_be_ruled_on():
    class Fresh:
        pass

    with pytest.raises(LookupError, match="Fresh has no row"):
        add_access_checks({Fresh: None}, lambda state: RightsLookup())


def test_every_permission_is_explained_and_needed_somewhere():
    assert set(MEANINGS) == set(PERMISSIONS)
    assert set(OF_ROLE) == set(ROLE_IDS) == set(ROLES)
    used = {row.permission for row in rights_table().values()}
    assert set(PERMISSIONS) - used == {"service"}
    for lesser, greater in pairwise(role for role in ROLES if role != "WorkspaceCreator"):
        assert OF_ROLE[lesser] < OF_ROLE[greater]
    assert OF_ROLE["WorkspaceCreator"] < OF_ROLE["ClusterAdmin"]
    assert set(API_TYPES) == OF_ROLE["ClusterAdmin"] - EVERYBODY - {"speak"}


def test_a_script_speaks_for_its_own_run_alone():
    assert may("ann", "speak", "run", 1) == "yes", "a person speaks for whatever is theirs"
    assert may("ann", "speak", "run", "1.r1.1", script="1.r1.1") == "yes"
    assert "does not belong to run 1" in may("ann", "speak", "run", 1, script="1.r1.1")


# -- the real owners, asked past the gateway


def refused(rules, state, command):
    with pytest.raises(Refused) as caught:
        rules.commands[type(command)](state, command, Call("c", 0.0))
    assert caught.value.problem.code == "permission_denied"
    return str(caught.value)


def ok(rules, state, command):
    return rules.commands[type(command)](state, command, Call("c", 0.0))


@pytest.fixture
def searching():
    """Experiment 1 of Olga; Egon is somebody else."""
    return Fold(SEARCHER).apply(user(3, "olga"), user(4, "egon"), story.created(1, user="olga")).state


@pytest.mark.parametrize(
    "command",
    [
        commands.ChangeExperiment(experiment_id=1, action="kill", user="egon"),
        commands.ChangeExperiment(experiment_id=1, action="delete", user="egon"),
        commands.KillTrial(trial_id=1, user="egon"),
        commands.ReviseExperiment(experiment_id=1, changes={"resources.priority": 1}, user="egon"),
        commands.CreateTrial(experiment_id=1, request_id="r", hparams={}, user="egon"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_the_searcher_refuses_users_without_the_role(searching, command):
    assert "belongs to user 'olga'" in refused(SEARCHER, searching, command)


def test_everybody_describes_experiments(searching):
    ok(SEARCHER, searching, commands.ReviseExperiment(experiment_id=1, changes={"notes": "n"}, user="egon"))


def test_names_and_rights_follow_the_person(searching):
    kill = commands.ChangeExperiment(experiment_id=1, action="kill", user="anna")
    fold = Fold(SEARCHER).apply(user(3, "olga"), story.created(1, user="olga"))
    assert "belongs to" in refused(SEARCHER, fold.state, kill)
    fold.apply(user(3, "anna", former=("olga",)))
    ok(SEARCHER, fold.state, kill)
    fold.apply(user(3, "anna", former=("olga",), active=False))
    assert refused(SEARCHER, fold.state, kill) == "user 'anna' is not active"
    fold.apply(user(4, "egon", admin=True))
    ok(SEARCHER, fold.state, commands.ChangeExperiment(experiment_id=1, action="kill", user="egon"))


def test_the_first_administrator_may_be_none_any_more(searching):
    kill = commands.ChangeExperiment(experiment_id=1, action="kill", user="admin")
    ok(SEARCHER, searching, kill)
    state = Fold(SEARCHER).apply(story.created(1, user="olga"), user(1, "admin", admin=False)).state
    assert "belongs to" in refused(SEARCHER, state, kill)


def test_the_scheduler_refuses_users_without_the_role():
    fold = Fold(SCHEDULER).apply(story.worker_here(), story.created(1, user="olga"), story.run_requested(1))
    state = fold.state
    for command in (
        commands.ChangeJob(experiment_id=1, priority=1, user="egon"),
        commands.AskToLeave(allocation_id="1.r1.1", user="egon"),
        commands.MarkDaemon(allocation_id="1.r1.1", rank=0, user="egon"),
    ):
        assert "belongs to user 'olga'" in refused(SCHEDULER, state, command)
    for switch in (
        commands.SwitchWorker(worker_id="w-1", enabled=False, user="olga"),
        commands.SwitchSlot(worker_id="w-1", slot_id=0, enabled=False, user="olga"),
    ):
        assert "not an administrator" in refused(SCHEDULER, state, switch)


def test_a_task_is_its_users():
    own = commands.SubmitTask(
        task_id="c", kind="COMMAND", user="olga", name="c", config={}, slots=0, pool="default"
    )
    fold = Fold(SCHEDULER).apply(story.worker_here())
    fold.apply(*ok(SCHEDULER, fold.state, own).events)
    assert "belongs to" in refused(SCHEDULER, fold.state, commands.StopTask(task_id="c", user="egon"))
    assert "belongs to" in refused(
        SCHEDULER, fold.state, commands.ChangeJob(experiment_id=-1, priority=1, user="egon")
    )
    ok(SCHEDULER, fold.state, commands.StopTask(task_id="c", user="olga"))


def test_checkpoints_and_models_are_their_users():
    fold = Fold(CHECKPOINTS).apply(
        story.created(1, user="olga"), story.trial_created(1), story.stored(1, "c-1", 10)
    )
    fold.apply(*ok(CHECKPOINTS, fold.state, commands.SetModel(name="m", user="olga")).events)
    for command in (
        commands.DeleteCheckpoints(uuids=("c-1",), user="egon"),
        commands.RemoveModel(model_id=1, user="egon"),
        commands.SetModel(model_id=1, archived=True, user="egon"),
    ):
        assert "belongs to user 'olga'" in refused(CHECKPOINTS, fold.state, command)
    ok(CHECKPOINTS, fold.state, commands.SetModel(model_id=1, notes="n", user="egon"))


def test_a_script_administers_nothing_whoever_it_belongs_to():
    call = Call("c", 0.0, script="1.r1.1")
    switch = commands.SwitchWorker(worker_id="w-1", enabled=False, user="admin")
    state = Fold(SCHEDULER).apply(story.worker_here()).state
    ok(SCHEDULER, state, switch)
    with pytest.raises(Refused, match="a script may not"):
        SCHEDULER.commands[commands.SwitchWorker](state, switch, call)
    password = commands.SetPassword(user_id=1, password=commands.Password(), user="admin")
    with pytest.raises(Refused, match="a script may not"):
        GATEWAY.commands[commands.SetPassword](Fold(GATEWAY).state, password, call)


class Bus:
    """Carries one request to whoever hears its subject."""

    def __init__(self):
        self.hears = {}

    async def subscribe(self, subject, queue, cb):
        self.hears[subject] = cb

    async def request(self, subject, body, *, headers, **options):
        answered = asyncio.get_running_loop().create_future()

        async def respond(data):
            answered.set_result(types.SimpleNamespace(data=data))

        message = types.SimpleNamespace(subject=subject, data=body, headers=headers, respond=respond)
        await self.hears[subject](message)
        return await answered


def test_the_bus_says_whether_a_script_asks():
    async def story_of_both():
        bus, calls = Bus(), []

        async def handle(command, call):
            calls.append(call.script)
            return 1, None

        bus_server = BusServer(bus, "searcher")
        await bus_server.serve_commands({commands.KillTrial: handle})
        for script in ("1.r1.1", ""):
            acting.SCRIPT.set(script)
            await BusClient(bus).command(commands.KillTrial(trial_id=1, user="ann"))
        await cancel_and_wait(bus_server._clock_task)
        return calls

    assert asyncio.run(story_of_both()) == ["1.r1.1", ""]


def test_the_gateway_itself_refuses_users_without_the_role():
    state = Fold(GATEWAY).apply(user(3, "olga"), user(4, "egon")).state
    for command in (
        commands.SetUser(username="x", admin=True, user="egon"),
        commands.SetUser(user_id=4, admin=True, user="egon"),
        commands.SetPassword(user_id=3, password=commands.Password(), user="egon"),
        commands.KeepSettings(user_id=3, settings=(), forget=True, user="egon"),
        commands.ViewProject(user_id=3, project_id=1, user="egon"),
    ):
        assert "not an administrator" in refused(GATEWAY, state, command)
    ok(GATEWAY, state, commands.SetPassword(user_id=4, password=commands.Password(), user="egon"))


def test_what_is_deleted_is_nobodys(searching):
    fold = Fold(SEARCHER).apply(story.created(1, user="olga"))
    assert set(fold.state.homes) == {1}
    fold.apply(ExperimentDeleted(1, "DELETED", "deleted"))
    assert fold.state.homes == {}


# -- where roles decide
