"""Whatever stands in a path in place of an id, it is never an error of the gateway."""

import re
from urllib.parse import quote

import pytest

from det_contracts import ids
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
