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
    return {one["name"]: one["schema"] for one in parameters if one["in"] == "query"}


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
    assert sum(bool(queried(spec, path)) for path, found in spec["paths"].items() if "get" in found) > 45


def test_it_is_served_to_anybody_and_names_are_unique(gateway):
    gateway.client.headers.pop("Authorization", None)
    found = gateway.get("/api/v1/openapi.json")
    operations = [one for methods in found["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in operations]
    assert len(ids) == len(set(ids)) > 180
    assert all("422" not in one["responses"] and "default" in one["responses"] for one in operations)
    assert "REST API" in gateway.send("GET", "/docs").text
