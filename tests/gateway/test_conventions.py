"""What holds for every request (REST spec, section 1)."""

from __future__ import annotations

import json

import pytest

from det_contracts.events import scheduler
from det_contracts.problems import Problem, Refused, invalid
from services.kit import paging
from services.kit.paging import Window
from services.web import body_limits, errors
from tests.gateway import stories as story


def test_errors_have_one_shape_inside_the_api_and_another_outside(gateway):
    answer = gateway.send("GET", "/api/v1/nothing")
    assert answer.status_code == 404
    assert answer.json() == {
        "error": {"code": 5, "reason": "NotFound", "error": "there is nothing at /api/v1/nothing"}
    }
    answer = gateway.send("GET", "/nothing")
    assert (answer.status_code, answer.json()) == (404, {"message": "there is nothing at /nothing"})


@pytest.mark.parametrize(
    ("method", "path", "offered"),
    [
        ("DELETE", "/api/v1/experiments", "GET, POST"),
        ("TRACE", "/api/v1/experiments/1", "DELETE, GET, PATCH"),
        # The part behind the last slash is no number, but another route has all of it.
        ("PATCH", "/api/v1/experiments/archive", "POST"),
        ("PUT", "/tasks", "GET"),
    ],
)
def test_a_method_that_is_not_offered_is_told_which_are(gateway, method, path, offered):
    gateway.log_in("determined")
    answer = gateway.send(method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, offered)
    assert f"{method} is not offered at {path}, only {offered}" in answer.text


@pytest.mark.parametrize(
    ("problem", "when"),
    [
        (Problem("exhausted", "a full budget", 314), "314"),
        (Problem("exhausted", "of a service of the version before"), "5"),
        (Problem("unavailable", "no answer"), "5"),
        (Problem("no_space", "a full disk"), None),
        (Problem("invalid_argument", "a number", 7), None),
    ],
)
def test_what_may_be_otherwise_later_says_when(problem, when):
    assert errors.response("/api/v1/x", problem).headers.get("Retry-After") == when


def test_the_table_of_codes():
    table = {(meaning.number, meaning.name, meaning.status) for meaning in errors.API_ERRORS.values()}
    assert table == {
        (3, "InvalidArgument", 400),
        (5, "NotFound", 404),
        (6, "AlreadyExists", 409),
        (7, "PermissionDenied", 403),
        (8, "ResourceExhausted", 429),
        (8, "ResourceExhausted", 507),
        (9, "FailedPrecondition", 400),
        (12, "Unimplemented", 501),
        (13, "Internal", 500),
        (14, "Unavailable", 503),
        (16, "Unauthenticated", 401),
    }


def test_a_bug_is_500_with_the_same_body(gateway):
    def break_down(command):
        raise ZeroDivisionError("oops")

    gateway.apply(story.created(1))
    gateway.peers.on_command = break_down
    assert "oops" in gateway.refused(500, "POST", "/api/v1/experiments/1/pause")


def test_a_trailing_slash_is_ignored(gateway):
    assert gateway.get("/api/v1/me/") == gateway.get("/api/v1/me")
    assert gateway.get("/info///")["cluster_id"] == "c-1"


def test_pretty_is_for_humans(gateway):
    plain = gateway.send("GET", "/api/v1/master")
    pretty = gateway.send("GET", "/api/v1/master?pretty")
    assert plain.json() == pretty.json()
    assert "\n" not in plain.text
    assert pretty.text == json.dumps(pretty.json(), indent=2)


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b'{"username": 3}', b""])
def test_a_body_that_does_not_fit_is_400(gateway, body):
    answer = gateway.send("POST", "/api/v1/auth/login", body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == 3


def test_a_body_is_json_whatever_it_is_called(gateway):
    for kind in ("application/x-www-form-urlencoded", "text/plain", "application/json"):
        body, headers = {"username": "determined"}, {"Content-Type": kind}
        assert gateway.post("/api/v1/auth/login", body, headers=headers)["token"]


def test_unknown_fields_and_nulls_are_ignored(gateway):
    body = {"username": "determined", "password": None, "isHashed": None, "more": {}}
    assert gateway.post("/api/v1/auth/login", body)["user"]["username"] == "determined"


def test_what_is_too_large_is_413(gateway, monkeypatch):
    monkeypatch.setattr(body_limits, "LIMIT_BYTES", 50)
    monkeypatch.setattr(body_limits, "CREATE_LIMIT_BYTES", 80)
    message = gateway.refused(413, "POST", "/api/v1/auth/login", b"x" * 51)
    assert message == "the request is too large: at most 50 bytes are taken; send less at once"
    assert gateway.send("POST", "/api/v1/experiments", b"x" * 51).status_code == 400
    gateway.refused(413, "POST", "/api/v1/experiments/", b"x" * 81)

    async def chunks():
        for _ in range(3):
            yield b"x" * 20

    async def send():
        return await gateway.client.post("/api/v1/auth/login", content=chunks())

    answer = gateway.run(send())
    assert answer.status_code == 413
    assert answer.json()["error"]["reason"] == "ResourceExhausted"


@pytest.mark.parametrize("noun", ["metrics", "training_metrics", "validation_metrics"])
def test_a_report_that_no_message_holds_is_413_before_it_is_read(gateway, monkeypatch, noun):
    monkeypatch.setattr(body_limits, "REPORT_LIMIT_BYTES", 50)
    message = gateway.refused(413, "POST", f"/api/v1/trials/7/{noun}", b"x" * 51)
    assert message == "the request is too large: at most 50 bytes are taken; send less at once"
    gateway.refused(400, "POST", "/api/v1/trials/profiler/metrics", b"x" * 51)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(), (0, 10)),
        (Window(limit=-1), (0, 10)),
        (Window(offset=3, limit=4), (3, 7)),
        (Window(offset=8, limit=4), (8, 10)),
        (Window(offset=-3), (7, 10)),
        (Window(offset=-10, limit=1), (0, 1)),
        (Window(offset=10), (10, 10)),
    ],
)
def test_most_lists_give_everything_by_default(window, expected):
    part = paging.span(window, 10)
    assert (part.start, part.end) == expected
    assert part.pagination == {
        "offset": window.offset,
        "limit": window.limit,
        "startIndex": expected[0],
        "endIndex": expected[1],
        "total": 10,
    }


@pytest.mark.parametrize("window", [Window(offset=11), Window(offset=-11), Window(limit=-2)])
def test_most_lists_refuse_what_lies_outside(window):
    with pytest.raises(Refused) as refused:
        paging.span(window, 10)
    assert refused.value.problem.code == "invalid_argument"


@pytest.mark.parametrize(
    ("noun", "answer", "key"),
    [
        ("users", "users", "id"),
        ("workspaces", "workspaces", "id"),
        ("agents", "agents", "id"),
        ("resource-pools", "resourcePools", "name"),
        ("templates", "templates", "name"),
        ("job-queues", "jobs", "jobId"),
    ],
)
def test_every_list_has_a_direction(gateway, noun, answer, key):
    gateway.apply(story.worker_here("w-1"), story.worker_here("w-2"), story.created(1), story.created(2))
    settings = scheduler.PoolSettings()
    gateway.apply(scheduler.PoolConfigured(pool="other", settings=settings, reason="configured"))
    gateway.apply(
        *(event for id in (1, 2) for event in (story.trial_created(id, id), story.run_requested(id, id)))
    )
    gateway.post("/api/v1/workspaces", {"name": "vision"})
    for name in ("a", "b"):
        gateway.post("/api/v1/templates", {"name": name, "config": {}})

    def listed(**params):
        return [item[key] for item in gateway.get(f"/api/v1/{noun}", **params)[answer]]

    up = listed()
    assert len(up) == 2
    assert listed(orderBy="ORDER_BY_DESC") == up[::-1]
    assert listed(orderBy="ORDER_BY_DESC", limit=1) == up[-1:]


def test_experiments_refuse_limits_without_a_meaning():
    with pytest.raises(Refused, match="limit"):
        paging.experiments_span(Window(limit=-3), 10)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("experiments", "states=STATE_FOO"),
        ("experiments", "sortBy=7"),
        ("experiments/1/trials", "states=STATE_FOO"),
        ("experiments/1/trials", "sortBy=SORT_BY_FOO"),
        ("experiments/1/checkpoints", "states=STATE_FOO"),
        ("experiments/1/checkpoints", "sort_by=SORT_BY_FOO"),
        ("trials/1/checkpoints", "states=STATE_RUNNING"),
        ("trials/1/workloads", "filter=FILTER_OPTION_FOO"),
        ("trials/1/logs", "levels=LOG_LEVEL_FOO"),
        ("job-queues", "states=STATE_FOO"),
        ("job-queues-v2", "states=STATE_FOO"),
        ("agents", "sortBy=SORT_BY_FOO"),
        ("models", "sortBy=SORT_BY_FOO"),
        ("workspaces", "sortBy=SORT_BY_FOO"),
    ],
)
def test_unknown_names_are_rejected_with_the_known_ones(gateway, path, query):
    gateway.apply(story.created(1), story.trial_created(1))
    message = gateway.refused(400, "GET", f"/api/v1/{path}?{query}")
    assert " and one of " in message
    assert query.partition("=")[2].rpartition("_")[2] in message


def test_a_bulk_action_on_a_state_that_is_none_is_refused(gateway):
    gateway.apply(story.created(1))
    body = {"filters": {"states": ["STATE_ACTIV"]}}
    assert "'ACTIV'" in gateway.refused(400, "POST", "/api/v1/experiments/kill", body)
    assert gateway.peers.commands == []


def test_a_line_of_a_stream_that_failed():
    assert errors.line(Problem("not_found", "x")) == {
        "error": {"grpc_code": 5, "http_code": 404, "message": "x", "http_status": "NotFound"}
    }
    assert invalid("x").problem.code == "invalid_argument"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/api/v1/experiments/1/move", {"destinationProjectId": False}, "destinationProjectId: "),
        ("/api/v1/agents/w/disable", {"drain": 1}, "drain: "),
        ("/api/v1/experiments/1/move", {"destinationProjectId": 2**63}, "destinationProjectId: "),
    ],
)
def test_true_is_no_number_and_one_is_not_true(gateway, path, body, message):
    gateway.log_in("admin")
    gateway.apply(story.worker_here(), story.created(1))
    assert message in gateway.refused(400, "POST", path, body)
