"""Input that is made to break: no answer is a failure of ours, and the loop is never held up for long."""

from __future__ import annotations

import json
import re

import pytest

from services.gateway.http.server import application
from services.rest_routes.pages.openapi import document
from tests.fixtures.tiers import others_in_full
from tests.gateway import stories as story
from tests.gateway.test_create import PATH, YAML

SURROGATE = "\ud800"
DEEP = json.loads("[" * 900 + "]" * 900)
BODIES = {
    "lone surrogates": lambda name: {name: SURROGATE, "x": {SURROGATE: [SURROGATE]}},
    "surrogates inside": lambda name: {name: {"a": {"b": [SURROGATE]}}},
    "surrogates as keys": lambda name: {name: {SURROGATE: 1}},
    "surrogates in lists": lambda name: {name: [SURROGATE, {"path": SURROGATE, "content": SURROGATE}]},
    "depth": lambda name: {name: DEEP},
    "depth inside": lambda name: {name: {"a": DEEP}},
    "large numbers": lambda name: {name: 10**400},
    "large numbers inside": lambda name: {name: {"a": [10**400, -(10**400)]}},
    "null characters": lambda name: {name: "\0a\0", "x": {"\0": "\0"}},
    "not a number": lambda name: {name: {"a": [float("nan"), float("inf"), -0.0]}},
    "many keys": lambda name: {name: {str(n): n for n in range(30_000)}},
    "a long text": lambda name: {name: "é" * 900_000},
    "many items": lambda name: {name: [{}] * 100_000},
}


@pytest.fixture
def gateway(gateway):
    gateway.log_in("admin")
    gateway.apply(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))
    return gateway


def operations(gateway):
    """Method, path and schema of every request that has a body."""
    spec = document(application(gateway.backend))
    schemas = spec["components"]["schemas"]
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            body = (
                operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            )
            if body is not None:
                schema = schemas.get(body.get("$ref", "").rpartition("/")[2], {})
                yield method.upper(), re.sub(r"{\w+(:path)?}", "1", path), list(schema.get("properties", {}))


SOME_BODIES = ("surrogates as keys", "depth inside", "large numbers", "null characters", "not a number")
"""Small ones, each of another kind; every one is sent to all routes, in every field."""


@pytest.mark.parametrize("kind", others_in_full(BODIES, SOME_BODIES))
def test_no_body_is_a_failure(gateway, longest_turn, kind):
    failures = []
    for method, path, names in operations(gateway):
        if "logout" in path:
            continue
        for name in names or ["config"]:
            body = json.dumps(BODIES[kind](name)).encode()
            answer = gateway.send(method, path, body)
            if answer.status_code in (500, 502, 504):
                failures.append((method, path, name, answer.text[:200]))
    assert failures == []
    longest_turn.check()


CONFIGURATIONS = {
    "surrogates": 'name: "\\ud800"\n',
    "surrogate keys": 'data: {"\\udfff": 1}\n',
    "brackets": "data: " + "[" * 100_000,
    "braces": "data: " + "{a: " * 25_000,
    "dashes": "data:\n" + "- " * 50_000,
    "indents": "".join(" " * n + "a:\n" for n in range(440)),
    "aliases": "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    "merges": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)),
    "a circle": "data: &a {b: *a}\n",
    "a circle of merges": "data: &a {<<: *a}\n",
    "quotes": "data: " + "'" * 100_000,
    "a number": "data: " + "9" * 100_000,
    "tags": "data: " + "!!str " * 20_000 + "x\n",
    "anchors": "data: [" + ", ".join(f"&a{n} x" for n in range(40_000)) + "]\n",
    "a python object": "data: !!python/object/apply:os.system [true]\n",
    "comments": "# x\n" * 200_000,
    "keys": "".join(f"k{n}: {n}\n" for n in range(60_000)),
    "complex keys": "data: {? [a, b] : c, ? {d: e} : f}\n",
    "dates": "data: [2001-12-14t21:59:43.10-05:00, 99999-99-99, 0000-00-00]\n",
    "base 60": "data: [1:1:1:1:1, 190:20:30]\n",
    "null": "data: \0\n",
    "a mark": "\ufeffname: x\n",
    "ends of lines": "name: a\u2028b\u0085c\rd\n",
    "binary": "data: !!binary ////\n",
    "sets": "data: !!set {a, b}\n",
    "pairs": "data: !!omap [a: 1, b: 2]\n",
}


SOME_CONFIGURATIONS = (
    "surrogates", "brackets", "dashes", "aliases", "merges", "a circle", "a number", "anchors",
    "a python object", "keys", "dates", "null",
)  # fmt: skip
"""Of each kind: odd characters and values, depth, what unfolds or has no end, length, number, and code."""


@pytest.mark.parametrize("kind", others_in_full(CONFIGURATIONS, SOME_CONFIGURATIONS))
def test_no_configuration_is_a_failure(gateway, longest_turn, kind):
    text = YAML + CONFIGURATIONS[kind]
    for body in ({"config": text}, {"config": CONFIGURATIONS[kind]}):
        answer = gateway.send("POST", PATH, {**body, "validateOnly": True})
        assert answer.status_code in (200, 400), answer.text[:300]
    longest_turn.check()


CONTEXTS = {
    "links": [{"path": "a", "type": 50, "content": ""}],
    "hard links": [{"path": "a", "type": 49, "content": ""}],
    "devices": [{"path": "a", "type": 51}, {"path": "b", "type": 52}],
    "pipes": [{"path": "a", "type": 54}],
    "letters": [{"path": "a", "type": "x"}],
    "roots": [{"path": "/etc/passwd", "content": ""}],
    "climbing": [{"path": "a/../../b", "content": ""}],
    "null": [{"path": "a\0b", "content": ""}],
    "surrogates": [{"path": SURROGATE, "content": ""}],
    "depth": [{"path": "a/" * 1900 + "f", "content": ""}],
    "length": [{"path": "a" * 300, "content": ""}],
    "a long way": [{"path": "a/" * 200_000 + "f", "content": ""}],
    "both": [{"path": "a", "content": ""}, {"path": "a/b", "content": ""}],
    "twice": [{"path": "a", "content": ""}, {"path": "./a", "content": ""}],
    "no base64": [{"path": "a", "content": "*"}],
    "modes": [{"path": "a", "content": "", "mode": 2**62, "mtime": 2**62}],
    "early": [{"path": "a", "content": "", "mtime": -(2**62)}],
    "empty": [{"path": "", "content": ""}],
    "dots": [{"path": ".", "type": 53}, {"path": "..", "type": 53}],
    "many": [{"path": f"{n}", "content": ""} for n in range(20_000)],
}


SOME_CONTEXTS = (
    "links", "devices", "letters", "roots", "climbing", "null", "surrogates", "a long way", "both",
    "no base64", "modes", "many",
)  # fmt: skip
"""Of each kind: files that are none, paths that lead out, odd or long names, conflicts, values, and many."""


@pytest.mark.parametrize("kind", others_in_full(CONTEXTS, SOME_CONTEXTS))
def test_no_context_is_a_failure(gateway, longest_turn, kind):
    body = {"config": YAML, "modelDefinition": CONTEXTS[kind], "validateOnly": True}
    answer = gateway.send("POST", PATH, body)
    assert answer.status_code in (200, 400), answer.text[:300]
    longest_turn.check()
