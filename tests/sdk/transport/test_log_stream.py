from __future__ import annotations

import pytest

from determined.common.api import errors
from determined.transport import log_stream
from determined.transport.rest import Session
from tests.sdk.fake_gateway import Lines, Status

LOGS, TRIAL = "/api/v1/trials/3/logs", "/api/v1/trials/3"


def line(number, at):
    """A record; several share one microsecond if `at` says so."""
    return {"id": number, "timestamp": f"2023-08-01T12:00:00.{at:06}789Z", "message": f"line {number}\n"}


def since(call, records):
    """What a gateway sends: strictly after the instant, which it compares in nanoseconds."""
    after = call.query.get("timestampAfter", [""])[0].rstrip("Z")
    return [{"result": record} for record in records if record["timestamp"].rstrip("Z") > after]


@pytest.fixture
def session(gateway, client_home, monkeypatch):
    monkeypatch.setattr(log_stream, "_PAUSE_S", 0)
    monkeypatch.setattr(log_stream, "_BUSY_PAUSE_S", 0)
    gateway.answer("GET", TRIAL, {"trial": {"state": "STATE_COMPLETED"}})
    with Session(gateway.url) as made:
        yield made


def ids(records):
    return [record["id"] for record in records]


def test_read_gives_what_is_there(gateway, session):
    gateway.answer("GET", LOGS, Lines([{"result": line(1, 1)}]))
    assert ids(log_stream.read(session, log_stream.trial(3), {"limit": 5})) == [1]
    assert gateway.calls[-1].query == {"limit": ["5"]}


def test_a_finished_trial_is_followed_once(gateway, session):
    gateway.answer("GET", LOGS, Lines([{"result": line(n, n)} for n in range(3)]))
    assert ids(log_stream.follow(session, log_stream.trial(3), {"levels": ["LOG_LEVEL_INFO"]})) == [0, 1, 2]
    (call,) = gateway.calls_to("GET", LOGS)
    assert call.query == {"follow": ["true"], "levels": ["LOG_LEVEL_INFO"]}


def test_a_dropped_connection_is_taken_up_without_loss_or_doubles(gateway, session):
    records = [line(1, 5), line(2, 7), line(3, 7), line(4, 7), line(5, 9)]
    gateway.answer(
        "GET",
        LOGS,
        lambda call: Lines(since(call, records)[:2], cut=True),
        lambda call: Lines(since(call, records)[:2], cut=True),
        Status(503),
        lambda call: Lines(since(call, records)),
    )
    assert ids(log_stream.follow(session, log_stream.trial(3))) == [1, 2, 3, 4, 5]
    resumed = gateway.calls_to("GET", LOGS)[1]
    assert resumed.query["timestampAfter"] == ["2023-08-01T12:00:00.000006Z"]


def test_a_master_without_a_place_for_a_stream_is_asked_again(gateway, session):
    """As after a restart, when many follow a log, or when a proxy refuses without saying until when."""
    refusals = [Status(429) for _ in range(8)]
    gateway.answer("GET", LOGS, *refusals, lambda call: Lines(since(call, [line(1, 1), line(2, 2)])))
    assert ids(log_stream.follow(session, log_stream.trial(3))) == [1, 2]
    assert len(gateway.calls_to("GET", LOGS)) == len(refusals) + 1


def test_an_end_before_the_trials_end_is_no_end(gateway, session):
    records = [line(1, 1), line(2, 2)]
    gateway.answer("GET", TRIAL, {"trial": {"state": "STATE_RUNNING"}}, {"trial": {"state": "STATE_ERROR"}})
    gateway.answer("GET", LOGS, Lines([{"result": records[0]}]), lambda call: Lines(since(call, records)))
    assert ids(log_stream.follow(session, log_stream.trial(3))) == [1, 2]


def test_a_broken_stream_of_an_ended_trial_is_read_to_its_end(gateway, session):
    records = [line(1, 1), line(2, 2)]
    gateway.answer(
        "GET", LOGS, Lines([{"result": records[0]}], cut=True), lambda call: Lines(since(call, records))
    )
    assert ids(log_stream.follow(session, log_stream.trial(3))) == [1, 2]


def test_an_unknown_trial_is_an_error(gateway, session):
    gateway.answer("GET", LOGS, Status(404, {"error": {"error": "trial '3' not found"}}))
    with pytest.raises(errors.NotFoundException, match="trial '3' not found"):
        list(log_stream.follow(session, log_stream.trial(3)))


def test_a_master_that_stays_away_is_an_error(gateway, session):
    gateway.answer("GET", LOGS, Status(503))
    gateway.answer("GET", TRIAL, Status(503, "still away"))
    with pytest.raises(errors.APIException, match="still away"):
        list(log_stream.follow(session, log_stream.trial(3)))
    assert len(gateway.calls_to("GET", TRIAL)) == 4 * 6
