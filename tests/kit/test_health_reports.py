"""What other processes say is wrong with them, and what becomes of who lies or falls silent."""

import asyncio

import msgspec
import pytest

from det_contracts import subjects
from services.kit import conditions as names
from services.kit import health_reports
from services.kit.conditions import Conditions, Trouble
from services.kit.health_reports import (
    EXPIRY_S,
    MAX_MESSAGE_CHARACTERS,
    MAX_TROUBLES,
    HealthReports,
    publish_health,
)

METRICS = subjects.health_sign("metrics", "ab12")


class Clock:
    now = 50.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def signs(clock):
    return HealthReports(clock)


def trouble(condition=names.LOG_LAGS, **fields):
    return Trouble(
        **{"condition": condition, "about": "LOGS", "message": "late", "since": 1.0, "program": "x"} | fields
    )


def heard(signs, *troubles, subject=METRICS):
    signs.record(subject, msgspec.json.encode(troubles))
    return [(entry.program, entry.condition, entry.about) for entry in signs.current()]


def test_what_is_said_holds_until_it_is_taken_back_or_who_said_it_falls_silent(signs, clock):
    assert heard(signs, trouble()) == [("metrics", "log_lags", "LOGS")]
    assert heard(signs) == []
    heard(signs, trouble())
    clock.now += EXPIRY_S
    assert signs.current() == []


def test_who_says_it_is_who_the_broker_let_say_it(signs):
    assert heard(signs, trouble(program="gateway"), subject=subjects.health_sign("worker", "gpu-1")) == [
        ("worker gpu-1", "log_lags", "LOGS")
    ]


def test_invalid_and_excess_entries_are_left_out(signs):
    for body in (b"", b"null", b"[1]", b'[{"condition": 5}]', b"[" * 10_000, b"\xff"):
        signs.record(METRICS, body)
    assert signs.current() == []
    heard(signs, trouble("no such condition"))
    assert signs.current() == []
    heard(signs, *[trouble(about=str(n), message="x" * 10_000) for n in range(1000)])
    assert len(signs.current()) == MAX_TROUBLES
    assert {len(entry.message) for entry in signs.current()} == {MAX_MESSAGE_CHARACTERS}


def test_nobody_fills_the_memory_by_inventing_names(signs, monkeypatch):
    monkeypatch.setattr(health_reports, "MAX_SENDERS", 3)
    for number in range(10):
        heard(signs, trouble(), subject=subjects.health_sign("worker", str(number)))
    assert len(signs.current()) == 3
    # Who is known is heard all the same.
    assert len(heard(signs, trouble(), subject=subjects.health_sign("worker", "0"))) == 3


def test_a_process_speaks_while_something_is_wrong_and_once_more_when_it_is_over(monkeypatch):
    monkeypatch.setattr(health_reports, "EVERY_S", 0.0)
    published = []

    class Connection:
        async def publish(self, subject, body):
            published.append((subject, [entry["condition"] for entry in msgspec.json.decode(body)]))

    async def until(count):
        while len(published) < count:
            await asyncio.sleep(0)

    async def work():
        conditions = Conditions("metrics")
        telling = asyncio.create_task(publish_health(Connection(), conditions, "ab12"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert published == []
        # What all see for themselves is not said.
        conditions.set_condition(names.NOBODY_LEADS, {"searcher": "nobody"})
        conditions.set_condition(names.LOG_LAGS, {"LOGS": "late"})
        await until(3)
        conditions.set_condition(names.LOG_LAGS, {})
        while published[-1][1]:
            await asyncio.sleep(0)
        count = len(published)
        for _ in range(20):
            await asyncio.sleep(0)
        telling.cancel()
        assert len(published) == count

    asyncio.run(work())
    assert set(map(str, published)) == {str((METRICS, ["log_lags"])), str((METRICS, []))}
