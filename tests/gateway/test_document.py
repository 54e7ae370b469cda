"""The OpenAPI document: what the framework knows of routes."""

from __future__ import annotations

import pytest

from services.gateway.http.server import application
from services.rest_routes.pages.openapi import document


@pytest.fixture
def spec(gateway):
    return document(application(gateway.backend))


def queried(spec, path):
    """Schemas of what GET takes behind the question mark, by name."""
    parameters = spec["paths"][path]["get"].get("parameters", [])
    return {parameter["name"]: parameter["schema"] for parameter in parameters if parameter["in"] == "query"}


def test_it_says_what_may_be_asked_for(spec):
    taken = queried(spec, "/api/v1/experiments")
    assert taken["limit"] == {"type": "integer", "default": 0}
    assert taken["orderBy"] == {
        "type": "string",
        "enum": ["ORDER_BY_UNSPECIFIED", "ORDER_BY_ASC", "ORDER_BY_DESC"],
    }
    assert "SORT_BY_NUM_TRIALS" in taken["sortBy"]["enum"]
    assert "STATE_QUEUED" in taken["states"]["items"]["enum"]
    assert taken["userIds"] == {"type": "array", "items": {"type": "integer"}}
    assert {"experimentIdFilter.incl", "lean", "labels"} <= taken.keys()
    assert queried(spec, "/api/v1/series").keys() >= {"from", "to", "trialIds"}
    assert queried(spec, "/experiments/{experiment_id}/preview_gc").keys() == {
        "saveExperimentBest", "saveTrialBest", "saveTrialLatest",
    }  # fmt: skip
    assert sum(bool(queried(spec, path)) for path, methods in spec["paths"].items() if "get" in methods) > 45


def test_it_is_served_to_anybody_and_names_are_unique(gateway):
    gateway.client.headers.pop("Authorization", None)
    openapi = gateway.get("/api/v1/openapi.json")
    operations = [operation for methods in openapi["paths"].values() for operation in methods.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids)) > 180
    assert all(
        "422" not in operation["responses"] and "default" in operation["responses"]
        for operation in operations
    )
    assert "REST API" in gateway.send("GET", "/docs").text
