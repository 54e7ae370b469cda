"""The OpenAPI document: what the framework knows of routes."""

from __future__ import annotations

import json
import re
import threading

import pytest

from services.gateway.http.server import application
from services.rest_routes.pages import openapi as building
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
    bounds = {"minimum": -(2**63) + 2, "maximum": 2**63 - 2}
    # -1 means everything, and -2 nothing.
    assert taken["limit"] == {"type": "integer", "default": 0, "minimum": -2, "maximum": 2**63 - 2}
    assert taken["orderBy"] == {
        "type": "string",
        "enum": ["ORDER_BY_UNSPECIFIED", "ORDER_BY_ASC", "ORDER_BY_DESC", "0", "1", "2"],
    }
    assert "SORT_BY_NUM_TRIALS" in taken["sortBy"]["enum"]
    assert "STATE_QUEUED" in taken["states"]["items"]["enum"]
    assert taken["userIds"] == {"type": "array", "items": {"type": "integer", **bounds}}
    assert {"experimentIdFilter.incl", "lean", "labels"} <= taken.keys()
    assert queried(spec, "/api/v1/series").keys() >= {"from", "to", "trialIds"}
    assert queried(spec, "/experiments/{experiment_id}/preview_gc").keys() == {
        "saveExperimentBest", "saveTrialBest", "saveTrialLatest",
    }  # fmt: skip
    assert sum(bool(queried(spec, path)) for path, methods in spec["paths"].items() if "get" in methods) > 45


def test_every_reference_leads_to_a_schema(spec):
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(spec)))
    assert len(references) > 100
    assert references - spec["components"]["schemas"].keys() == set()


def test_what_is_sent_is_described_also_where_a_route_reads_it_for_itself(spec):
    def body(method, path):
        return spec["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]

    assert body("post", "/api/v1/experiments") == {"$ref": "#/components/schemas/CreateExperiment"}
    assert body("post", "/api/v1/notebooks") == {"$ref": "#/components/schemas/TaskBody"}
    assert body("post", "/task-logs")["items"] == {"$ref": "#/components/schemas/Record"}
    # Requests of these methods that take nothing are about what the path names.
    bare = {
        (method, path)
        for path, methods in spec["paths"].items()
        for method in ("post", "put", "patch")
        if method in methods and "requestBody" not in methods[method] and "{" not in path
    }
    assert bare == {
        ("post", "/api/v1/auth/logout"),
        ("post", "/api/v1/users/setting/reset"),
    }


def test_a_field_that_may_be_left_out_may_be_null_and_one_that_must_be_sent_may_not(spec):
    schemas = spec["components"]["schemas"]
    assert {"type": "null"} in schemas["Disable"]["properties"]["drain"]["anyOf"]
    assert schemas["NewModel"]["required"] == ["name"]
    assert schemas["NewModel"]["properties"]["name"] == {"type": "string", "minLength": 1}
    assert {"type": "null"} in schemas["ModelBody"]["properties"]["name"]["anyOf"]


def test_bounds_of_integers_are_exact(spec):
    priority = spec["components"]["schemas"]["TaskPriority"]["properties"]["priority"]
    assert priority == {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
    assert "e+18" not in json.dumps(spec)


def test_what_anybody_may_ask_needs_no_token_and_what_is_no_json_is_said(spec):
    def operation(path):
        return spec["paths"][path]["get"]

    assert operation("/api/v1/master")["security"] == []
    assert "security" not in operation("/api/v1/me")
    assert operation("/debug/prom/metrics")["responses"]["200"]["content"].keys() == {
        "text/plain; version=0.0.4; charset=utf-8"
    }
    assert operation("/resources/allocation/raw")["responses"]["200"]["content"].keys() == {"text/csv"}
    assert "/det" not in spec["paths"]


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


def test_it_is_built_once_and_beside_the_event_loop(gateway, monkeypatch):
    complete, threads = building._complete_operation, []

    def complete_and_note(*operation):
        threads.append(threading.get_ident())
        complete(*operation)

    monkeypatch.setattr(building, "_complete_operation", complete_and_note)
    first = gateway.get("/api/v1/openapi.json")
    completed = len(threads)
    assert gateway.get("/api/v1/openapi.json") == first
    assert len(threads) == completed > 180
    assert threading.get_ident() not in threads
