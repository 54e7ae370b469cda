from __future__ import annotations

import json
import threading

import pytest

from determined.common.api import errors
from determined.transport import rest
from determined.transport.rest import Session
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.own_time import set_time
from tests.fixtures.ports import reserved_port
from tests.sdk.fake_gateway import Lines, Status

PATH = "/api/v1/things"


@pytest.fixture
def session(gateway):
    with Session(gateway.url, pauses=(0,) * 5) as made:
        yield made


def test_json_goes_both_ways(gateway, session):
    gateway.answer("POST", PATH, {"id": 7})
    session.token = "secret"
    assert session.post(PATH, {"name": "x"}, headers={"Idempotency-Key": "k"}) == {"id": 7}
    (call,) = gateway.calls_to("POST", PATH)
    assert call.json == {"name": "x"}
    assert call.headers["Authorization"] == "Bearer secret"
    assert call.headers["Content-Type"] == "application/json"
    assert call.headers["Idempotency-Key"] == "k"


def test_parameters_repeat_their_key(gateway, session):
    gateway.answer("GET", PATH, {})
    session.get(PATH, {"states": ["A", "B"], "limit": 3})
    assert gateway.calls[-1].query == {"states": ["A", "B"], "limit": ["3"]}


def test_netrc_does_not_overrule_the_token(gateway, session, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    session.token = "secret"
    session.get("/info")
    assert gateway.calls[-1].headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("method", ["get", "put", "delete"])
@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_busy_gateway_is_asked_six_times(gateway, session, method, status):
    gateway.answer(method.upper(), PATH, Status(status, {"message": "busy"}))
    with pytest.raises(errors.APIException, match="busy") as caught:
        getattr(session, method)(PATH)
    assert caught.value.status_code == status
    assert len(gateway.calls) == 6


def test_a_gateway_that_recovers_is_answered_by(gateway, session):
    gateway.answer("GET", PATH, Status(503), Status(504), {"fine": True})
    assert session.get(PATH) == {"fine": True}


def test_a_gateway_that_says_nothing_is_asked_once(gateway, session, monkeypatch):
    monkeypatch.setattr(rest, "_ANSWER_S", 0.2)
    over = threading.Event()
    gateway.answer("GET", PATH, lambda call: over.wait(60) and {})
    with pytest.raises(errors.MasterNotFoundException, match=r"no answer from the master at .* timed out"):
        session.get(PATH)
    # Its thread may be behind.
    wait_for(lambda: gateway.calls_to("GET", PATH), 60, "the question to be read")
    over.set()
    assert len(gateway.calls_to("GET", PATH)) == 1


@pytest.mark.parametrize("status", [400, 404, 500])
def test_other_statuses_are_not_retried(gateway, session, status):
    gateway.answer("GET", PATH, Status(status, "no"))
    with pytest.raises(errors.APIException):
        session.get(PATH)
    assert len(gateway.calls) == 1


def test_a_post_is_sent_once(gateway, session):
    gateway.answer("POST", PATH, Status(503, "busy"))
    with pytest.raises(errors.APIException):
        session.post(PATH)
    assert len(gateway.calls) == 1


@pytest.mark.parametrize("method", ["get", "put", "delete", "post", "patch"])
def test_a_throttled_request_is_repeated_after_retry_after(gateway, session, monkeypatch, method):
    pauses = []
    set_time(monkeypatch, rest, sleep=pauses.append)
    again = Status(429, {"message": "too much"}, {"Retry-After": "7"})
    gateway.answer(method.upper(), PATH, again, again, {"fine": True})
    body = [{"a": 1}] if method in ("put", "patch", "post") else []
    assert getattr(session, method)(PATH, *body) == {"fine": True}
    assert pauses == [7, 7]


def test_an_upload_that_comes_again_is_whole(gateway, session):
    gateway.answer("POST", PATH, Status(429, "", {"Retry-After": "0"}), {})
    session.post(PATH, {"a": 1}, on_sent=lambda _: None)
    assert [call.json for call in gateway.calls] == [{"a": 1}, {"a": 1}]


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "3600"}, {"Retry-After": "soon"}])
def test_a_long_retry_after_fails_at_once(gateway, session, headers):
    gateway.answer("GET", PATH, Status(429, {"message": "too much"}, headers))
    with pytest.raises(errors.APIException, match="too much"):
        session.get(PATH)
    assert len(gateway.calls) == 1


def test_the_pauses_double_and_can_be_changed(monkeypatch):
    monkeypatch.delenv("DET_RETRY_CONFIG", raising=False)
    assert rest.default_pauses() == (0.5, 1, 2, 4, 8)
    monkeypatch.setenv("DET_RETRY_CONFIG", '{"total": 2, "backoff_factor": 0.1}')
    assert rest.default_pauses() == (0.1, 0.2)


def test_nobody_there_is_said_with_the_address(monkeypatch):
    url = f"http://127.0.0.1:{reserved_port()}"
    pauses = []
    set_time(monkeypatch, rest, sleep=pauses.append)
    with Session(url, pauses=(1, 2)) as session, pytest.raises(errors.MasterNotFoundException) as caught:
        session.get(PATH)
    assert str(caught.value) == f"no answer from the master at {url}: [Errno 111] Connection refused"
    assert pauses == [1, 2]


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (
            404,
            {"error": {"code": 5, "error": "trial '9' not found"}},
            errors.NotFoundException,
            "trial '9' not found",
        ),
        (404, {"message": "no such page"}, errors.NotFoundException, "no such page"),
        (403, {"error": {"error": "not yours"}}, errors.ForbiddenException, "Forbidden(not yours)"),
        (
            401,
            {"error": {"error": "token expired"}},
            errors.UnauthenticatedException,
            "Unauthenticated: token expired",
        ),
        (400, {"error": {"error": "a\nb"}, "message": "first"}, errors.APIException, "first"),
        (500, "<html>", errors.APIException, "a web page (status 500 Internal Server Error)"),
        (500, "", errors.APIException, "Internal Server Error"),
        (500, [1], errors.APIException, "[1]"),
    ],
)
def test_errors_carry_the_masters_words(gateway, session, status, body, kind, message):
    gateway.answer("GET", PATH, Status(status, body))
    with pytest.raises(kind) as caught:
        session.get(PATH)
    assert str(caught.value).startswith(message)
    assert caught.value.status_code == status


def test_an_answer_that_is_no_json(gateway, session):
    gateway.answer("GET", PATH, "<html>hello</html>")
    with pytest.raises(errors.BadResponseException, match="is this a master"):
        session.get(PATH)


def test_an_upload_tells_how_far_it_is(gateway, session):
    gateway.answer("POST", PATH, {})
    body = {"content": "x" * 300_000}
    sent = []
    session.post(PATH, body, on_sent=sent.append)
    assert gateway.calls[-1].json == body
    assert sent == sorted(sent)
    assert sent[-1] == len(json.dumps(body))
    assert len(sent) > 3


def test_a_stream_gives_its_records(gateway, session):
    gateway.answer("GET", PATH, Lines([{"result": {"n": n}} for n in range(3)]))
    assert [record["n"] for record in session.stream(PATH, {"follow": "true"})] == [0, 1, 2]
    assert gateway.calls[-1].query == {"follow": ["true"]}


def test_a_stream_that_breaks_says_so(gateway, session):
    gateway.answer("GET", PATH, Lines([{"result": 1}], cut=True))
    stream = session.stream(PATH)
    assert next(stream) == 1
    with pytest.raises(errors.MasterNotFoundException):
        next(stream)


def test_an_error_inside_a_stream_has_its_class(gateway, session):
    gateway.answer("GET", PATH, Lines([{"result": 1}, {"error": {"http_code": 404, "message": "gone"}}]))
    stream = session.stream(PATH)
    assert next(stream) == 1
    with pytest.raises(errors.NotFoundException, match="gone"):
        next(stream)
