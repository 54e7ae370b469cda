"""No gateway shows less than any of them has acknowledged, whichever a client's next request reaches."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from services.catalogue.log_end import LogEnd
from services.catalogue.store import EXPERIMENTS
from services.kit.log import OutcomeUnknown
from services.web import body_limits
from tests.gateway import stories as story
from tests.gateway.harness import Harness


@pytest.fixture
def gateway(tmp_path):
    harness = Harness(tmp_path)
    yield harness
    harness.close()


@pytest.fixture
def slow(gateway, tmp_path):
    """A replica that folds one event at a time, whenever `slow.fold` is set."""
    (tmp_path / "slow").mkdir()
    replica = Harness(tmp_path / "slow", replica_of=gateway)
    replica.fold, fold = asyncio.Event(), replica.runner._fold_portion

    async def fold_later(*args, **options):
        await replica.fold.wait()
        await fold(*args, **options)

    replica.runner._fold_portion = fold_later
    yield replica
    replica.fold.set()
    replica.close()


def soon(replica):
    """Let a replica go on, but not before a request has reached it."""
    replica.loop.call_later(0.05, replica.fold.set)


def test_a_session_closed_at_one_gateway_is_refused_at_the_other(gateway, slow):
    slow.fold.set()
    token = gateway.log_in("admin")
    slow.settle()
    slow.fold.clear()
    gateway.post("/api/v1/auth/logout", {})
    soon(slow)
    answer = slow.send("GET", "/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401, answer.text


def test_records_and_lists_show_what_another_gateway_acknowledged(gateway, slow):
    slow.let_in("admin")
    slow.fold.set()
    slow.settle()
    slow.fold.clear()
    gateway.log_in("admin")
    made = gateway.post("/api/v1/workspaces", {"name": "elsewhere"})["workspace"]["id"]
    gateway.run(gateway.append(story.created(1)))
    soon(slow)
    assert [experiment["id"] for experiment in slow.get("/api/v1/experiments")["experiments"]] == [1]
    assert slow.get(f"/api/v1/workspaces/{made}")["workspace"]["name"] == "elsewhere"


def test_a_password_changed_at_one_gateway_holds_at_the_other(gateway, slow):
    gateway.log_in("admin")
    user = gateway.get("/api/v1/me")["user"]["id"]
    assert gateway.send("POST", f"/api/v1/users/{user}/password", "new words").status_code == 200
    soon(slow)
    old = slow.send("POST", "/api/v1/auth/login", {"username": "admin", "password": ""})
    assert old.status_code == 401, old.text


@pytest.mark.parametrize("size", [1, body_limits.ANONYMOUS_LIMIT_BYTES + 1])
def test_a_token_made_at_one_gateway_opens_the_other_one_for_large_requests_too(gateway, slow, size):
    gateway.log_in("admin")
    token = gateway.post("/api/v1/tokens", {"name": "for a script"})["token"]
    soon(slow)
    body = {"name": "elsewhere", "ignored": "x" * size}
    answer = slow.send("POST", "/api/v1/workspaces", body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text


def test_what_is_known_is_shown_while_the_broker_is_away(gateway):
    gateway.apply(story.created(1)).let_in()

    async def away():
        raise OutcomeUnknown("nobody answers")

    gateway.catalogue._log_end._end = away
    assert gateway.get("/api/v1/experiments/1")["experiment"]["id"] == 1
    assert gateway.run(gateway.catalogue.catch_up()) is False


def test_a_gateway_that_stays_behind_shows_what_it_knows(gateway, slow, monkeypatch):
    monkeypatch.setattr("services.catalogue.catalogue.CATCH_UP_TIMEOUT_S", 0.01)
    slow.let_in()
    gateway.run(gateway.append(story.created(1)))
    assert slow.send("GET", "/api/v1/experiments/1").status_code == 404
    assert slow.send("GET", "/api/v1/master").status_code == 200


class Broker:
    """Answers when it is told to."""

    def __init__(self):
        self.end = 7
        self.questions = 0
        self.may_answer = asyncio.Event()

    async def __call__(self):
        self.questions += 1
        end = self.end
        await self.may_answer.wait()
        return end


def test_many_requests_share_one_question_but_never_an_older_one():
    async def story():
        broker = Broker()
        newest = LogEnd(broker)
        first = [asyncio.create_task(newest.position()) for _ in range(50)]
        await _until(lambda: broker.questions)
        broker.end = 9
        later = [asyncio.create_task(newest.position()) for _ in range(50)]
        await asyncio.sleep(0)
        broker.may_answer.set()
        assert set(await asyncio.gather(*first)) == {7}
        assert set(await asyncio.gather(*later)) == {9}
        assert broker.questions == 2

    asyncio.run(story())


def test_who_hangs_up_takes_nobody_elses_answer_along():
    async def story():
        broker = Broker()
        newest = LogEnd(broker)
        first, second = (asyncio.create_task(newest.position()) for _ in range(2))
        await _until(lambda: broker.questions)
        first.cancel()
        await asyncio.wait([first])
        broker.may_answer.set()
        assert await second == 7
        assert first.cancelled()
        assert await newest.position() == 7

    asyncio.run(story())


def test_a_failed_query_raises_for_its_callers_and_the_next_call_asks_again():
    async def story():
        answers = iter([RuntimeError("a defect"), 9])

        async def end():
            await asyncio.sleep(0)
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        newest = LogEnd(end)
        errors = await asyncio.gather(newest.position(), newest.position(), return_exceptions=True)
        assert [str(error) for error in errors] == ["a defect"] * 2
        assert await newest.position() == 9

    asyncio.run(asyncio.wait_for(story(), 60))


async def _until(true):
    while not true():
        await asyncio.sleep(0)


def test_a_gateway_that_shares_a_database_shows_what_another_one_wrote_there(gateway, tmp_path):
    other = Harness(tmp_path, replica_of=gateway)
    gates, fold = {2: asyncio.Event(), 3: asyncio.Event()}, other.runner._fold_portion

    async def fold_when_it_may(stream, read, messages, *, caught_up):
        if messages and messages[-1].position in gates:
            await gates[messages[-1].position].wait()
        await fold(stream, read, messages, caught_up=caught_up)

    other.runner._fold_portion = fold_when_it_may
    try:
        gateway.apply(story.created(1)).apply(story.created(2))
        # Position 1 is the intake's. What is folded from here on the other one has saved, with more, so that
        # this one may not.
        gates[2].set()
        gateway.run(_until(lambda: other.catalogue.position == 2))
        gateway.run(other.catalogue.wait_for_position(2))
        gates[3].set()
        other.let_in("admin")
        assert [experiment["id"] for experiment in other.get("/api/v1/experiments")["experiments"]] == [1, 2]
    finally:
        for gate in gates.values():
            gate.set()
        other.close()


def test_rows_that_another_gateway_wrote_wait_for_their_records(gateway, slow, tmp_path):
    slow.let_in("admin")
    slow.catalogue._database, slow.catalogue._saver = gateway.database, _Ahead(gateway)
    gateway.apply(story.created(1))
    soon(slow)
    listed = slow.run(slow.catalogue.read(lambda c: [row.id for row in c.execute(sa.select(EXPERIMENTS))]))
    assert listed == [1]
    assert slow.catalogue.experiment(1).id == 1


class _Ahead:
    """A saver whose tables were written by another gateway."""

    def __init__(self, gateway):
        self.saved_position = gateway.catalogue._saver.saved_position

    async def wait_for_position(self, position):
        return None
