"""Whatever clients of 0.25 may put behind the question mark is read; nothing of it is ignored in silence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from services.gateway.http.server import application
from services.rest_routes.pages.openapi import document
from tests.gateway import stories as story

ASKED = json.loads((Path(__file__).parents[1] / "vectors/queries-0.25.json").read_text())
"""Per path of a GET: the names of the parameters that the published client can send."""
LEFT_OUT = {
    "/api/v1/experiments": {"showTrialData"},  # The answer always has what it asks for.
    "/api/v1/trials/{}/profiler/metrics": {
        "follow",  # An answer holds what has been reported.
        "labels.agentId",  # Series are stored by name, type and GPU.
        "labels.gpuUuid",
        "labels.trialId",
    },
    "/api/v1/trials/time-series": {
        f"timeSeriesFilter.{kind}.{bound}"
        for kind, bounds in {
            "doubleRange": ("gt", "gte", "lt", "lte"),
            "timeRange": ("gt", "gte", "lt", "lte"),
            "integerRange": ("incl", "notIn"),
        }.items()
        for bound in bounds
    },
}
"""What is not read, with the reason."""


def queried(gateway):
    spec = document(application(gateway.backend))
    return {
        re.sub(r"\{[^}]*\}", "{}", path): {
            parameter["name"]
            for parameter in methods["get"].get("parameters", [])
            if parameter["in"] == "query"
        }
        for path, methods in spec["paths"].items()
        if "get" in methods
    }


def test_every_parameter_of_the_published_client_is_read(gateway):
    ours = queried(gateway)
    missing = {
        path: sorted(set(names) - ours[path] - LEFT_OUT.get(path, set())) for path, names in ASKED.items()
    }
    assert {path: names for path, names in missing.items() if names} == {}
    assert all(names & set(ASKED[path]) for path, names in LEFT_OUT.items()), "an exception names nothing"


def ids(records):
    return [record["id"] for record in records]


@pytest.fixture
def filed(gateway):
    """Workspaces Vision and nlp of two users, each with projects; experiments in two of them."""
    gateway.log_in("admin")
    gateway.post("/api/v1/workspaces", {"name": "Vision"})
    gateway.log_in("determined")
    gateway.post("/api/v1/workspaces", {"name": "nlp"})
    for name, text in (("b", "1"), ("a", "3"), ("c", "2")):
        gateway.post("/api/v1/workspaces/3/projects", {"name": name, "description": text})
    for id in (4, 3, 1, 2):
        gateway.apply(story.created(id), at=1_700_000_000.0 + (9 if id == 2 else id))
    gateway.post("/api/v1/experiments/1/move", {"destinationProjectId": 4})
    gateway.post("/api/v1/experiments/2/move", {"destinationProjectId": 2})
    return gateway


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"experimentIdFilter.gt": 1}, [2, 3, 4]),
        ({"experimentIdFilter.gte": 2, "experimentIdFilter.lt": 4}, [2, 3]),
        ({"experimentIdFilter.lte": 3, "experimentIdFilter.lt": 3}, [1, 2]),
        ({"experimentIdFilter.notIn": [1, 3]}, [2, 4]),
        ({"experimentIdFilter.lte": 0}, []),
        ({"experimentIdFilter.incl": [1, 2], "experimentIdFilter.gte": 2}, [2]),
    ],
)
def test_experiments_by_their_ids(filed, query, wanted):
    assert ids(filed.get("/api/v1/experiments", **query)["experiments"]) == wanted


@pytest.mark.parametrize(
    ("sort", "wanted"),
    [
        ("CREATION_TIME", [2, 3, 4]),
        ("NAME", [3, 2, 4]),
        ("DESCRIPTION", [2, 4, 3]),
        ("LAST_EXPERIMENT_START_TIME", [3, 4, 2]),
    ],
)
def test_projects_in_each_order(filed, sort, wanted):
    projects = filed.get("/api/v1/workspaces/3/projects", sortBy=f"SORT_BY_{sort}")["projects"]
    assert ids(projects) == wanted
    answer = filed.get("/api/v1/workspaces/3/projects", sortBy=f"SORT_BY_{sort}", orderBy="ORDER_BY_DESC")
    assert ids(answer["projects"]) == wanted[::-1]


def test_projects_tell_when_their_last_experiment_began(filed):
    shown = {project["id"]: project for project in filed.get("/api/v1/workspaces/3/projects")["projects"]}
    assert shown[3]["lastExperimentStartedAt"] is None
    assert shown[2]["lastExperimentStartedAt"] > shown[4]["lastExperimentStartedAt"]


def test_workspaces_of_users_and_pinned_ones(filed):
    def spaces(**query):
        return ids(filed.get("/api/v1/workspaces", **query)["workspaces"])

    assert spaces(users="admin", nameCaseSensitive="Vision") == [2]
    assert spaces(users="determined") == [3]
    assert spaces(userIds=1) == [1, 2]
    assert spaces(pinned="true") == []
    filed.post("/api/v1/workspaces/3/pin")
    assert (spaces(pinned="true"), spaces(pinned="false")) == ([3], [1, 2])
    assert ids(filed.get("/api/v1/workspaces/3/projects", users="admin")["projects"]) == []


def test_users_by_name_and_in_each_order(filed):
    filed.log_in("admin")
    for name, shown in (("zoe", "Ann"), ("bob", "")):
        filed.post("/api/v1/users", {"user": {"username": name, "displayName": shown, "active": True}})

    def names(**query):
        return [user["username"] for user in filed.get("/api/v1/users", **query)["users"]]

    assert names() == ["admin", "determined", "zoe", "bob"]
    assert (names(name="AN"), names(name="o")) == (["zoe"], ["zoe", "bob"])
    assert names(sortBy="SORT_BY_USER_NAME") == ["admin", "bob", "determined", "zoe"]
    assert names(sortBy="SORT_BY_NAME") == ["zoe", "admin", "bob", "determined"]
    assert names(sortBy="SORT_BY_ADMIN", orderBy="ORDER_BY_DESC")[0] == "admin"


def test_tasks_in_each_order(gateway):
    gateway.apply(story.worker_here(slots=4))
    made = [
        gateway.post("/api/v1/commands", {"config": {"entrypoint": ["true"], "description": text}})["command"]
        for text in ("b", "c", "a")
    ]

    def texts(sort):
        commands = gateway.get("/api/v1/commands", sortBy=f"SORT_BY_{sort}")["commands"]
        return [command["description"] for command in commands]

    assert (texts("DESCRIPTION"), texts("START_TIME")) == (["a", "b", "c"], ["b", "c", "a"])
    by_id = gateway.get("/api/v1/commands", sortBy="SORT_BY_ID")["commands"]
    assert ids(by_id) == sorted(ids(made))


def test_labels_of_models_in_a_workspace(filed):
    filed.post("/api/v1/models", {"name": "here", "labels": ["x"]})
    filed.post("/api/v1/models", {"name": "there", "labels": ["y"], "workspaceId": 3})
    assert filed.get("/api/v1/model/labels", workspaceId=3)["labels"] == ["y"]
    assert filed.get("/api/v1/model/labels")["labels"] == ["x", "y"]


def test_agents_have_no_labels(gateway):
    gateway.apply(story.worker_here())
    assert len(gateway.get("/api/v1/agents", label="")["agents"]) == 1
    assert gateway.get("/api/v1/agents", label="fast")["agents"] == []


def test_an_empty_password_comes_as_an_empty_body(gateway):
    gateway.log_in("admin")
    gateway.post("/api/v1/users", {"user": {"username": "ann", "active": True}, "password": "pw"})
    assert gateway.send("POST", "/api/v1/users/3/password").status_code == 200
    login = gateway.send("POST", "/api/v1/auth/login", {"username": "ann", "password": "", "isHashed": True})
    assert login.status_code == 200


def test_a_name_may_change_its_case(filed):
    changed = filed.send("PATCH", "/api/v1/workspaces/3", {"name": "NLP"})
    assert changed.json()["workspace"]["name"] == "NLP"
    changed = filed.send("PATCH", "/api/v1/projects/2", {"name": "B"})
    assert changed.json()["project"]["name"] == "B"
    assert "exists already" in filed.refused(409, "PATCH", "/api/v1/workspaces/3", {"name": "vision"})
    assert "exists already" in filed.refused(409, "PATCH", "/api/v1/projects/2", {"name": "A"})
