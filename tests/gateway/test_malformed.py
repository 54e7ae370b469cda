"""Thousands of requests that make no sense, over every endpoint: no failure of ours, no decision."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest

from det_contracts import queries
from det_contracts.problems import Problem, Refused
from services.gateway.http.server import application
from services.rest_routes.pages.openapi import document
from tests.gateway import stories as story

pytestmark = pytest.mark.live
REQUESTS = [500, pytest.param(10_000, marks=pytest.mark.full)]
AWAY = Refused(Problem("unavailable", "the service is away"))
IDS = (
    "0", "-1", "99999999", "1" * 40, "x", "..", "%2e%2e%2f", "é", "1.r1.9", "%00", "a b", "null", "1e3",
    "'; drop table experiments; --", "<script>", "%F0%9F%A6%89", "x" * 5000,
)  # fmt: skip
VALUES = ("-9", "1" * 30, "x", "", "true", "[]", "%00", "2023-13-45", "SORT_BY_X", "é" * 300, "NaN", "1e400")
JUNK = (
    b"", b"{", b"\xff\xfe", b"null", b"[]", b"3", b'"x"', b"{}", b"[[[[[]]]]]", b'{"a":' * 200, b"NaN",
    b'{"__proto__": {}}', b'{"\\ud800": 1}', b"true", b"1e999", b"\x00",
)  # fmt: skip
WRONG = (None, True, -1, 1e308, "", [], {}, [None], {"a": []}, "\x00", "é" * 3000, 10**30)
NOT_JSON_BUT_FINE = {"auth_logout", "put_templates_name", "templates_name"}
"""These make sense with odd bodies, too (an empty template is one); they are asked by somebody unknown."""
SENSELESS = {200, 307, 400, 401, 403, 404, 405, 409, 413, 501, 503}


@pytest.fixture
def busy(gateway):
    """Experiment 1 runs; everybody else's services are away."""
    gateway.log_in("admin")
    gateway.apply(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))
    gateway.apply(story.stored(1, "c-1", 10))
    for query in list(queries.OWNER_OF):
        gateway.peers.values[query] = AWAY
    return gateway


class Nonsense:
    """Requests, the same for the same seed."""

    def __init__(self, seed, operations):
        self.random = random.Random(seed)
        self.operations = operations

    def request(self):
        path, method, operation = self.random.choice(self.operations)
        choose = self.random.choice
        filled = re.sub(r"{\w+(:path)?}", lambda _: choose(IDS), path)
        named = [
            parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
        ]
        names = [*named, "offset", "limit", "nonsense"]
        query = {choose(names): choose(VALUES) for _ in range(self.random.randrange(4))}
        query = {
            name: value for name, value in query.items() if name not in ("follow", "timeoutSeconds", "topics")
        }
        body = None if method == "get" else self.body(operation)
        unknown = operation["operationId"].removeprefix("post_") in NOT_JSON_BUT_FINE
        token = {"Authorization": choose(("Bearer x.y", "Bearer ", "Basic x", "Bearer task.x.y", "x"))}
        headers = token if unknown or self.random.random() < 0.05 else {}
        return method.upper(), filled, query, body, headers

    def body(self, operation):
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if schema is None or self.random.random() < 0.5:
            return self.random.choice(JUNK)
        names = self.fields(schema)
        return json.dumps({name: self.random.choice(WRONG) for name in names}).encode()

    def fields(self, schema):
        component = self.schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
        return list(component.get("properties", {"x": 1}))


@pytest.mark.parametrize("requests", REQUESTS)
def test_nothing_breaks_and_nothing_is_decided(busy, requests):
    doc = document(application(busy.backend))
    paths = doc["paths"].items()
    operations = [
        (path, method, operation) for path, methods in paths for method, operation in methods.items()
    ]
    nonsense = Nonsense(20261121, operations)
    nonsense.schemas = doc["components"]["schemas"]
    before = [message.body for message in busy._stream()]
    token = busy.client.headers["Authorization"]
    answers, met = Counter(), set()
    for _ in range(requests):
        method, path, query, body, headers = nonsense.request()
        busy.client.headers["Authorization"] = headers.get("Authorization", token)
        answer = busy.send(method, path, body, params=query)
        busy.client.cookies.clear()
        answers[answer.status_code] += 1
        met.add((method, path.split("/")[-1]))
        # Who tries to sign in and fails, again and again, is told to wait.
        expected = SENSELESS | {429} if "/auth/" in path else SENSELESS
        assert answer.status_code in expected, (method, path, query, body, answer.status_code, answer.text)
        stored_bodies = [m.body for m in busy._stream()[len(before) :]]
        assert not stored_bodies, (method, path, query, body, stored_bodies)
    assert answers[400] > requests / 10
    assert answers[404] > requests / 10
