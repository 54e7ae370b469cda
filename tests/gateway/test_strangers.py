"""Everybody at the door of every route: who is let in is what the permission table says (docs/rights.md)."""

from __future__ import annotations

import json

import pytest

from services.gateway.http.server import application, surface
from services.rest_routes import routers
from services.rest_routes.pages.openapi import document
from services.rest_routes.routers import rights_table
from services.web.routes import Routes
from tests.fixtures.tiers import others_in_full
from tests.gateway.harness import Harness
from tests.gateway.strangers import QUERY, furnish, path_of

ROWS = rights_table()

UNKNOWN = ("nobody", "expired", "worker")
"""Whom nobody knows, each in their own way: 401."""
OTHERS = ("egon", "vera", "wanda", "other script")
EVERYBODY = {*OTHERS, "olga", "admin", "script", "sister script"}
OWNER = {"olga", "admin", "script", "sister script"}
PEOPLE = {"egon", "vera", "wanda", "olga", "admin"}
MAY = {
    ("logged_in", "cluster"): EVERYBODY,
    ("own_account", "cluster"): PEOPLE,
    ("own_account", "user"): {"olga", "admin"},
    ("administer_users", "cluster"): {"admin"},
    ("assign_roles", "body"): {"admin"},
    ("administer_cluster", "cluster"): {"admin"},
    ("create_workspace", "cluster"): EVERYBODY,
    ("read_log", "cluster"): EVERYBODY,
    ("speak", "trial"): {"olga", "admin", "script"},
    ("speak", "run"): {"olga", "admin", "script"},
    **{
        ("view", kind): EVERYBODY
        for kind in ("listed", "workspace", "project", "experiment", "trial", "task")
    },
    **{("view", kind): EVERYBODY for kind in ("page", "checkpoint", "model", "template")},
    **{("edit", kind): EVERYBODY for kind in ("experiment", "checkpoint", "model", "template", "body")},
    **{(create, "body"): EVERYBODY for create in ("create", "create_task")},
    ("create_project", "workspace"): EVERYBODY,
    ("edit_project", "project"): EVERYBODY,
    **{("control", kind): OWNER for kind in ("experiment", "trial", "model", "body")},
    ("control_task", "task"): OWNER,
    **{("delete", kind): OWNER for kind in ("experiment", "model", "body")},
    ("control_project", "project"): OWNER,
    ("control_workspace", "workspace"): OWNER,
    ("speak", "body"): {"olga", "admin", "script"},
}
"""Basic mode, in words of its own: who may do what of what, where all of it is Olga's."""
ONE = {"experimentIds": [1]}
TRIAL = {"experimentId": 2, "hparams": {}}
JUDGES = {
    "trialId": 1,
    "checkpointUuid": "c-1",
    "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE",
}
STORED = {"taskId": "1.r1", "allocationId": "1.r1.1", "uuid": "new", "metadata": {"steps_completed": 1}}
PROFILED = {"labels": {"trialId": 1, "name": "x"}, "values": [1.0], "batches": [1]}
GRANT = {"role": {"roleId": 4}, "scopeWorkspaceId": 2}
VIEWER = {"userRoleAssignments": [{"userId": 4, "roleAssignment": GRANT}]}
BODIES = {
    **{("POST", f"/api/v1/experiments/{verb}"): ONE for verb in ("activate", "pause", "cancel", "kill")},
    **{("POST", f"/api/v1/experiments/{verb}"): ONE for verb in ("archive", "unarchive")},
    ("POST", "/api/v1/experiments/move"): {**ONE, "destinationProjectId": 1},
    ("DELETE", "/api/v1/experiments/delete"): {"experimentIds": [2]},
    ("POST", "/api/v1/job-queues"): {"updates": [{"jobId": "experiment-1", "priority": 3}]},
    ("DELETE", "/api/v1/checkpoints"): {"checkpointUuids": ["c-1"]},
    ("POST", "/api/v1/checkpoints/rm"): {"checkpointUuids": ["c-1"]},
    ("POST", "/api/v1/checkpoints"): STORED,
    ("POST", "/api/v1/trials"): TRIAL,
    ("PUT", "/api/v1/trials"): {"createTrialRequest": TRIAL, "externalTrialId": "e"},
    ("POST", "/api/v1/trials/profiler/metrics"): {"batches": [PROFILED]},
    ("POST", "/api/v1/trial-source-info"): {"trialSourceInfo": JUDGES},
    ("POST", "/task-logs"): [{"task_id": "1.r1", "allocation_id": "1.r1.1", "log": "x"}],
    **{("POST", f"/api/v1/roles/{verb}-assignments"): VIEWER for verb in ("add", "remove")},
    ("PATCH", "/api/v1/users/{user_id}"): {"displayName": "x"},
    ("POST", "/api/v1/users/{user_id}/password"): "x",
    ("POST", "/api/v1/trials/{trial_id}/start"): {"resume": False},
    ("PATCH", "/api/v1/trials/{trial_id}"): {"state": "RUNNING"},
}
"""What is sent where the body names the thing, or else nothing would be asked for."""
NOT_OF_A_RUN = {("POST", "/api/v1/trials"), ("PUT", "/api/v1/trials")}
"""Of an unmanaged experiment: whoever acts for its owner makes trials of it."""
OF_DELETION_TASKS = ("PATCH", "/api/v1/checkpoints")
BULK = {route for route, body in BODIES.items() if isinstance(body, dict) and "experimentIds" in body}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    harness = Harness(tmp_path_factory.mktemp("strangers"))
    furnish(harness)
    yield harness
    harness.close()


def expected(visitor, route):
    """The status that the table says: 401, 403, or 0 for being let in."""
    needed = ROWS[route]
    if needed[0] == "anybody":
        return 0
    if visitor in UNKNOWN:
        return 401
    if visitor == "gone" or route == OF_DELETION_TASKS:
        return 403
    allowed = MAY[needed[:2]] | ({"sister script"} if route in NOT_OF_A_RUN else set())
    return 0 if visitor in allowed else 403


def answer(world, visitor, route):
    """The status of what was refused, or 0: whatever is wrong with the request itself counts as let in."""
    method, template = route
    headers = {"Authorization": f"Bearer {token}"} if (token := world.tokens[visitor]) else {}
    params = QUERY if method == "GET" else {}
    body = BODIES.get(route, {})
    response = world.send(method, path_of(template), body, params=params, headers=headers)
    if response.status_code in (401, 403):
        return response.status_code
    if response.status_code == 500:
        return response.text
    if route in BULK:
        (result,) = json.loads(response.text)["results"]
        return 403 if "belongs to user" in result["error"] else 0
    return 0


VISITORS = [*UNKNOWN, "gone", *OTHERS, "olga", "admin", "script", "sister script"]
SOME_VISITORS = ["nobody", "gone", "egon", "other script", "olga", "script"]
"""One of each kind: without roles, Vera and Wanda may do what Egon may."""


@pytest.mark.parametrize("visitor", others_in_full(VISITORS, SOME_VISITORS))
def test_whoever_comes_is_let_in_where_the_table_says(world, visitor):
    wrong = {}
    for route in ROWS:
        status = answer(world, visitor, route)
        if status != expected(visitor, route):
            wrong[route] = f"{ROWS[route]}: {status or 'let in'}, not {expected(visitor, route) or 'let in'}"
    assert wrong == {}


def test_every_route_of_the_document_has_a_row(world):
    paths = document(application(world.backend))["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    # In the document a parameter is named without what it may hold.
    rows = {(method, path.replace(":path", "")) for method, path in ROWS}
    assert routes - rows == set()


def test_a_route_cannot_be_declared_without_what_it_needs():
    with pytest.raises(TypeError, match="needs"):
        Routes().get("/open/to/all")


def test_a_route_that_is_declared_twice_is_found(monkeypatch):
    again = Routes()
    again.post("/experiments/{experiment_id}/kill", ("anybody", "cluster"))(lambda: None)
    monkeypatch.setattr(routers, "API_ROUTES", (*routers.API_ROUTES, again))
    with pytest.raises(ValueError, match="/kill is declared twice"):
        rights_table()


def test_all_routes_that_are_served_are_in_the_table():
    served = {(method, route.path) for route in surface().routes for method in route.methods}
    assert served == set(ROWS)
