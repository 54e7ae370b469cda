"""The OpenAPI document against what routes really take."""

from __future__ import annotations

import re

import pytest

from det_contracts import queries
from det_contracts.events import searcher
from services.gateway.http import application
from services.gateway.web import params
from services.gateway.web.document import QUERY, RAW_QUERY, document
from tests.gateway import stories as story

KNOWN = dict(
    experiment_id="1", trial_id="1", uuid="c-1", allocation_id="1.r1.1", task_id="1.r1", agent_id="w-1",
    resources_id="1.r1.1-0", slot_id="0", name="digits", kind="trial", id="1",
)  # fmt: skip
SENT = {"metricName": "loss", "ids": 1, "trialIds": 1, "metricNames": "loss", "timeoutSeconds": 0}
UNLISTED = {"pretty", "seconds"}


@pytest.fixture
def asked(monkeypatch):
    """Names that a request was asked for, in snake_case."""
    names = set()
    for method in ("text", "texts", "integer", "integers", "flag", "names", "instant"):
        real = getattr(params.Params, method)

        def note(self, name, *rest, _real=real, **more):
            names.add(name.partition(".")[0])
            return _real(self, name, *rest, **more)

        monkeypatch.setattr(params.Params, method, note)
    return names


@pytest.fixture
def told(gateway):
    """A gateway with one of everything."""
    gateway.log_in("admin")
    gateway.given(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))
    gateway.given(story.stored(1, "c-1", 10), searcher.ExperimentEnded(1, "COMPLETED", "done"))
    gateway.post("/api/v1/models", {"name": "digits"})
    gateway.peers.values |= {
        queries.SearchRungs: {"brackets": []},
        queries.SearcherEvents: {"state": "COMPLETED", "events": []},
        queries.Series: [],
        queries.ValidationHistory: [],
        queries.MetricNames: {},
        queries.ReportedSteps: [],
        queries.LogFields: {
            "places": [],
            "ranks": [],
            "stdtypes": [],
            "sources": [],
            "levels": {},
            "lines": 0,
            "last_number": 0,
            "last_line": None,
            "first_error": None,
            "failing_line": None,
            "marks": [],
        },
        queries.LogCause: None,
        queries.PreviewRetention: [],
    }
    return gateway


def test_every_parameter_that_is_read_is_listed(told, asked, capsys):
    missing = {}
    for path, operations in document(application(told.backend))["paths"].items():
        if "get" not in operations:
            continue
        queried = [one for one in operations["get"]["parameters"] if one["in"] == "query"]
        listed = {_snake(one["name"]).partition(".")[0] for one in queried}
        asked.clear()
        told.send("GET", re.sub(r"{(\w+)}", lambda found: KNOWN.get(found[1], "1"), path), params=SENT)
        if left := asked - listed - UNLISTED:
            missing[path] = left
    assert missing == {}


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def test_every_path_in_the_list_exists(told):
    paths = document(application(told.backend))["paths"]
    assert {f"/api/v1{path}" for path in QUERY} | RAW_QUERY.keys() <= paths.keys()


def test_it_is_served_to_anybody_and_names_are_unique(told):
    told.client.headers.pop("Authorization")
    found = told.get("/api/v1/openapi.json")
    operations = [one for methods in found["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in operations]
    assert len(ids) == len(set(ids)) > 180
    assert all("422" not in one["responses"] and "default" in one["responses"] for one in operations)
    assert "REST API" in told.send("GET", "/docs").text
