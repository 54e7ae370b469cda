"""Whatever stands in a path in place of an id, it is never an error of the gateway."""

import re
from urllib.parse import quote

import pytest

from det_contracts import ids, queries
from det_contracts.problems import Problem, Refused
from tests.gateway import stories as story

VALUES = ["9" * 5000, str(2**63), "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT ONE}", "1_0"]
"""Too long for a number, or for a column; digits to Python, but no number."""


def paths(gateway):
    document = gateway.get("/api/v1/openapi.json")["paths"]
    return [
        (method.upper(), path)
        for path, methods in document.items()
        for method in methods
        if "{" in path and "stream" not in path
    ]


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_no_id_of_any_form_is_an_internal_error(gateway, value):
    gateway.apply(story.created(1), story.trial_created(1))
    routes = paths(gateway)
    assert len(routes) > 100
    failed = []
    for method, path in routes:
        body = {} if method in ("POST", "PUT", "PATCH") else None
        answer = gateway.send(method, re.sub(r"\{[^}]+\}", quote(value, safe=""), path), body)
        if answer.status_code == 500:
            failed.append((method, path, answer.text[:200]))
    assert failed == []


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_nor_is_one_in_a_job_or_holder(gateway, value):
    assert ids.parse_number(value) is None
    assert ids.owner_of_job(f"experiment-{value}") is None
    for holder in (f"user-{value}", f"group-{value}"):
        assert gateway.send("DELETE", f"/api/v1/quotas/{quote(holder, safe='')}").status_code < 500
    assert gateway.send("GET", f"/api/v1/why/trial/{quote(value, safe='')}").status_code < 500


def integer_parameters(gateway):
    """Each number that a GET request may ask for: (path, name)."""
    for path, methods in gateway.get("/api/v1/openapi.json")["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", ()):
            schema = parameter["schema"]
            kinds = [schema, schema.get("items", {}), *schema.get("anyOf", ())]
            if parameter["in"] == "query" and any(kind.get("type") == "integer" for kind in kinds):
                yield path, parameter["name"]


@pytest.mark.parametrize("value", [2**63 - 1, 2**63 - 2, -(2**63) + 1, -(2**63) + 2])
def test_nor_is_the_largest_or_the_smallest_number_that_is_asked_for(gateway, value):
    gateway.apply(story.created(1), story.trial_created(1))
    for query in queries.OWNER_OF:
        gateway.peers.values[query] = Refused(Problem("unavailable", "the service is away"))
    parameters = list(integer_parameters(gateway))
    assert len(parameters) > 100
    failed = []
    for path, name in parameters:
        answer = gateway.send("GET", re.sub(r"\{[^}]+\}", "1", path) + f"?{quote(name)}={value}")
        if answer.status_code == 500:
            failed.append((path, name, answer.text[:200]))
    assert failed == []
