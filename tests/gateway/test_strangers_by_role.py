"""Everybody at the door of every route where roles decide: who is let in, refused, or shown nothing."""

from __future__ import annotations

import json

import pytest

from det_contracts.events import gateway
from services.rest_routes.routers import rights_table
from tests.fixtures.tiers import others_in_full
from tests.gateway import test_strangers as basic
from tests.gateway.harness import Harness
from tests.gateway.strangers import QUERY, furnish, path_of

ROWS = rights_table()

HERE, ELSEWHERE = 2, 3
"""Workspaces: all of Olga's is in the first of them, and of it the others know nothing."""
ROLES = {
    "user-4": ("Editor", ELSEWHERE),  # egon
    "user-5": ("Viewer", HERE),  # vera
    "user-6": ("WorkspaceAdmin", HERE),  # wanda
    "user-7": ("Editor", HERE),  # who is gone
    "user-8": ("Viewer", ELSEWHERE),  # victor
    "group-2": ("Editor", HERE),  # olga's crew
}
SCRIPTS = {"script", "sister script"}
STRANGERS = {"egon", "victor", "other script"}
"""They have no role where it is."""
EVERYBODY = {"olga", "vera", "wanda", "admin", *SCRIPTS, *STRANGERS}
PEOPLE = EVERYBODY - SCRIPTS - {"other script"}
SEE = {"olga", "vera", "wanda", "admin", *SCRIPTS}
EDIT = SEE - {"vera"}
THINGS = (
    "workspace",
    "project",
    "experiment",
    "trial",
    "task",
    "page",
    "checkpoint",
    "model",
    "template",
    "body",
)
MAY = {
    ("logged_in", "cluster"): EVERYBODY,
    ("own_account", "cluster"): PEOPLE,
    ("own_account", "user"): {"olga", "admin"},
    ("view", "listed"): EVERYBODY,
    **{("view", kind): SEE for kind in THINGS},
    **{
        (verb, kind): EDIT
        for verb in ("create", "create_task", "edit", "control", "delete")
        for kind in THINGS
    },
    ("control_task", "task"): EDIT,
    ("speak", "trial"): EDIT - {"sister script"},
    ("speak", "run"): EDIT - {"sister script"},
    ("speak", "body"): EDIT - {"sister script"},
    ("create_project", "workspace"): EDIT,
    ("edit_project", "project"): EDIT,
    ("control_project", "project"): EDIT,
    ("control_workspace", "workspace"): {"wanda", "admin"},
    ("assign_roles", "body"): {"wanda", "admin"},
    **{
        (verb, "cluster"): {"admin"}
        for verb in ("administer_users", "administer_cluster", "create_workspace", "read_log")
    },
}
"""In words of its own: who may do what of what in Olga's workspace."""
NAMED = {
    ("GET", f"/api/v1/{path}")
    for path in (
        "trials/metrics/trial_metrics",
        "trials/metrics/training_metrics",
        "trials/metrics/validation_metrics",
        "trials/time-series",
        "series",
        "why/{kind}/{id}",
    )
}
"""What answers of things that the address names beside its path."""
CONFIG = "{name: x, entrypoint: x, searcher: {name: single, metric: x, max_length: 1}}"
SUBMITTED = {"config": CONFIG, "projectId": 2}
TASK = {"workspaceId": HERE, "config": {"entrypoint": ["x"]}}
BODIES = basic.BODIES | {
    ("POST", "/api/v1/experiments"): SUBMITTED,
    ("PUT", "/api/v1/experiments/by-external-id/{external_id:path}"): SUBMITTED,
    ("POST", "/api/v1/commands"): TASK,
    ("POST", "/api/v1/notebooks"): {"workspaceId": HERE},
    ("POST", "/api/v1/shells"): {"workspaceId": HERE},
    ("POST", "/api/v1/tensorboards"): {**TASK, "experimentIds": [1]},
    ("POST", "/api/v1/models"): {"name": "new", "workspaceId": HERE},
    ("POST", "/api/v1/templates"): {"name": "new", "config": {}, "workspaceId": HERE},
    ("POST", "/api/v1/experiments/move"): {**basic.ONE, "destinationProjectId": 2},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    harness = Harness(tmp_path_factory.mktemp("by-role"))
    furnish(
        harness,
        gateway.AuthzSet("rbac", "tried"),
        gateway.WorkspaceSet(workspace_id=ELSEWHERE, name="Speech", owner="egon", reason="made by egon"),
        *(
            gateway.RolesSet(holder, (gateway.Grant(role, space),), "given by admin")
            for holder, (role, space) in ROLES.items()
        ),
    )
    yield harness
    harness.close()


def expected(visitor, route):
    """401, 403, 404 for what may not be seen, or 0 for being let in."""
    needed = ROWS[route][:2]
    if needed[0] == "anybody":
        return 0
    if visitor in basic.UNKNOWN:
        return 401
    if visitor == "gone" or route == basic.OF_DELETION_TASKS:
        return 403
    if visitor in STRANGERS and route in NAMED:
        return 404
    allowed = MAY[needed] | ({"sister script"} if route in basic.NOT_OF_A_RUN else set())
    if visitor in allowed:
        return 0
    of_people = needed[0] in ("own_account", "assign_roles") and visitor not in PEOPLE
    if visitor == "other script" and needed == ("speak", "body") and route not in basic.NOT_OF_A_RUN:
        # A run that a body names is not its own, whether there is one or not.
        return 403
    hidden = visitor in STRANGERS and needed[1] not in ("cluster", "user") and not of_people
    return 404 if hidden else 403


def answer(world, visitor, route):
    """The status of what was refused, or 0: whatever is wrong with the request itself counts as let in."""
    method, template = route
    headers = {"Authorization": f"Bearer {token}"} if (token := world.tokens[visitor]) else {}
    params = QUERY | {"names": "x", "metricNames": "x"} if method == "GET" else {}
    response = world.send(method, path_of(template), BODIES.get(route, {}), params=params, headers=headers)
    if response.status_code == 500:
        return response.text
    if response.status_code == 200 and route in basic.BULK:
        (result,) = json.loads(response.text)["results"]
        statuses = {"lacks a role": 403, "not found": 404}
        return next((status for words, status in statuses.items() if words in result["error"]), 0)
    return response.status_code if response.status_code in (401, 403, 404) else 0


VISITORS = [*basic.UNKNOWN, "gone", *sorted(EVERYBODY - {"admin"})]
SOME_VISITORS = ["egon", "vera", "wanda", "other script", "sister script"]
"""One of each role, and scripts; whoever is let in or shown nothing without roles, too, is tried there."""


@pytest.fixture(scope="module")
def absent(world):
    """Routes that find nothing even for an administrator."""
    return {route for route in ROWS if answer(world, "admin", route) == 404}


def test_an_administrator_may_use_every_route(world):
    refused = {route: status for route in ROWS if (status := answer(world, "admin", route)) not in (0, 404)}
    assert refused == {basic.OF_DELETION_TASKS: 403}


@pytest.mark.parametrize("visitor", others_in_full(VISITORS, SOME_VISITORS))
def test_every_route_allows_refuses_or_hides_according_to_the_role(world, absent, visitor):
    wrong = {}
    for route in ROWS:
        status, wanted = answer(world, visitor, route), expected(visitor, route)
        if status != wanted and not (status == 404 and wanted == 0 and route in absent):
            wrong[route] = f"{ROWS[route]}: {status or 'let in'}, not {wanted or 'let in'}"
    assert wrong == {}


def test_a_hidden_object_answers_like_a_missing_one(world):
    headers = {"Authorization": f"Bearer {world.tokens['egon']}"}
    for noun, id, other in (
        ("experiments", 1, 9),
        ("trials", 1, 9),
        ("workspaces", 2, 9),
        ("projects", 2, 9),
    ):
        hidden, missing = (
            world.send("GET", f"/api/v1/{noun}/{number}", headers=headers).text for number in (id, other)
        )
        assert hidden == missing.replace(f"'{other}'", f"'{id}'")
