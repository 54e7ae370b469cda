"""Lanes in virtual time: what wakes them, and that one lane's trouble is nobody else's."""

import asyncio
import itertools
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from det_contracts.problems import unavailable
from services.kit.awaitable_position import AwaitablePosition
from services.webhooks.lanes import MAX_BACKOFF_S, MAX_WAIT_S, MIN_BACKOFF_S, Lanes
from services.webhooks.sending import Result
from tests.simulation.loop import run
from tests.webhooks.conftest import ended

ARRIVED = Result(status=200)


class Cluster:
    """The rules in memory, a carrier that keeps what it was given, and lanes over both."""

    def __init__(self, hooks):
        self.hooks = hooks
        self.fold = hooks.fold
        self.count = AwaitablePosition()
        self.looks = 0
        self.leads = True
        self.stream_positions = SimpleNamespace(is_behind=False)
        self.sent = []
        """(when, webhook's address, delivery id)"""
        self.answers = {}
        """By address: what an attempt comes to, or the exception that it raises."""
        self.refusals = []
        """What the next commands come to, instead of being obeyed."""
        self.loop = asyncio.get_running_loop()
        self.lanes = Lanes(self, self, str, lambda: self.leads, clock=self.clock)

    def clock(self):
        return self.fold.now

    @property
    def state(self):
        self.looks += 1
        return self.fold.state

    async def wait_for_change(self, after):
        await self.count.wait_for_position(after + 1)
        return self.count.position

    def moved(self):
        self.fold.decide()
        self.count.advance(self.count.position + 1)

    def happened(self, *events):
        self.fold.apply(*events)
        self.moved()

    async def command(self, command, call, within_s=None):
        if self.refusals:
            raise self.refusals.pop(0)
        self.fold.rule(command)
        self.moved()

    async def send(self, url, body, headers):
        await asyncio.sleep(0.01)
        self.sent.append((self.loop.time(), url, headers["Steadfast-Delivery"]))
        answer = self.answers.get(url, ARRIVED)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def urls(self):
        return [url for _, url, _ in self.sent]


def played(hooks, story):
    """Runs a story beside the lanes; the rules' clock follows the loop's."""

    async def main():
        cluster = Cluster(hooks)
        began = cluster.fold.now
        cluster.clock = lambda: began + cluster.loop.time()
        cluster.lanes._clock = cluster.clock

        async def follow():
            while True:
                cluster.fold.now = began + cluster.loop.time()
                await asyncio.sleep(0.5)

        work = [asyncio.ensure_future(coroutine) for coroutine in (cluster.lanes.run(), follow())]
        try:
            await story(cluster)
            assert not work[0].done(), "the lanes have ended"
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    run(main())


def test_changes_wake_a_lane_and_without_any_it_rarely_polls(hooks):
    hooks.make(url="http://a/")

    async def story(cluster):
        await asyncio.sleep(3600.0)
        assert cluster.looks <= 2 * (3600 / MAX_WAIT_S + 1), "nobody polls"
        cluster.happened(ended(1))
        await asyncio.sleep(0.05)
        assert cluster.urls() == ["http://a/"], "it did not wait for anything"

    played(hooks, story)


def test_a_second_attempt_comes_when_it_is_due(hooks):
    hooks.make(url="http://a/")

    async def story(cluster):
        cluster.answers["http://a/"] = Result(problem="nobody listens")
        cluster.happened(ended(1))
        await asyncio.sleep(0.1)
        (delivery,) = cluster.fold.state.deliveries.values()
        due_s = delivery.next_at - cluster.clock()
        cluster.answers["http://a/"] = ARRIVED
        await asyncio.sleep(due_s - 1.0)
        assert len(cluster.sent) == 1
        await asyncio.sleep(2.0)
        assert len(cluster.sent) == 2
        assert cluster.sent[0][2] == cluster.sent[1][2], "under the same id"

    played(hooks, story)


def test_a_state_that_was_loaded_anew_delivers_nothing_before_it_is_as_far_as_it_was(hooks):
    """What it shows as waiting may have been delivered."""
    hooks.make(url="http://a/")

    async def story(cluster):
        cluster.stream_positions.is_behind = True
        cluster.happened(ended(1))
        await asyncio.sleep(100.0)
        assert cluster.sent == []
        cluster.stream_positions.is_behind = False
        cluster.moved()
        await asyncio.sleep(1.0)
        assert cluster.urls() == ["http://a/"]

    played(hooks, story)


def test_who_begins_to_lead_delivers_what_waits(hooks):
    hooks.make(url="http://a/")

    async def story(cluster):
        cluster.leads = False
        cluster.happened(ended(1))
        await asyncio.sleep(100.0)
        assert cluster.sent == []
        cluster.leads = True
        cluster.moved()
        await asyncio.sleep(0.05)
        assert len(cluster.sent) == 1

    played(hooks, story)


def test_an_attempt_that_breaks_is_logged_counts_as_failed_and_holds_up_nobody(hooks):
    hooks.make(url="http://bad/")
    hooks.make(url="http://good/")

    async def story(cluster):
        cluster.answers["http://bad/"] = RuntimeError("http://bad/ and its secret")
        with capture_logs() as logged:
            cluster.happened(ended(1))
            await asyncio.sleep(0.1)
        assert sorted(cluster.urls()) == ["http://bad/", "http://good/"]
        (line,) = [entry for entry in logged if entry["event"] == "attempt.failed"]
        assert (line["log_level"], line["webhook"]) == ("error", 1)
        (waiting,) = [
            delivery for delivery in cluster.fold.state.deliveries.values() if delivery.next_at is not None
        ]
        (attempt,) = waiting.tries
        assert "RuntimeError" in attempt.problem
        assert "secret" not in attempt.problem, "whoever sees the deliveries need not know the address"

    played(hooks, story)


@pytest.mark.parametrize("error", [RuntimeError("unforeseen"), unavailable("the log is full")])
def test_a_lane_that_fails_rests_longer_each_time_and_goes_on_in_the_end(hooks, error):
    hooks.make(url="http://a/")

    async def story(cluster):
        cluster.refusals = [error] * 4
        with capture_logs() as logged:
            cluster.happened(ended(1))
            await asyncio.sleep(0.5)
            assert len(cluster.sent) == 1, "it is not tried again at once"
            await asyncio.sleep(60.0)
        assert len(cluster.sent) == 5
        times = [at for at, _, _ in cluster.sent]
        pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert pauses == pytest.approx([MIN_BACKOFF_S * n for n in (1, 2, 4, 8)], abs=0.1)
        assert len({id for _, _, id in cluster.sent}) == 1, "under the same id"
        what = "lane.failed" if isinstance(error, RuntimeError) else "attempt.not_stored"
        assert [line["event"] for line in logged] == [what] * 4
        await asyncio.sleep(MAX_BACKOFF_S * 10)
        assert len(cluster.sent) == 5, "and not again once it is stored"

    played(hooks, story)


def test_while_one_lane_fails_others_deliver(hooks):
    hooks.make(url="http://bad/")
    hooks.make(url="http://good/")

    async def story(cluster):
        obey = cluster.command

        async def broken(command, call, within_s=None):
            if command.delivery_id == bad:
                raise RuntimeError("unforeseen")
            await obey(command, call)

        cluster.command = broken
        cluster.fold.apply(ended(1))
        cluster.fold.decide()
        bad = next(delivery.due.delivery_id for delivery in cluster.fold.state.deliveries.values())
        cluster.count.advance(1)
        await asyncio.sleep(30.0)
        assert cluster.urls().count("http://good/") == 1
        assert cluster.urls().count("http://bad/") > 2

    played(hooks, story)


def test_a_receiver_that_takes_its_time_delays_only_itself(hooks):
    hooks.make(url="http://slow/")
    hooks.make(url="http://good/")

    async def story(cluster):
        free, send = asyncio.Event(), cluster.send

        async def slow(url, body, headers):
            if url == "http://slow/":
                await free.wait()
            return await send(url, body, headers)

        cluster.send = slow
        cluster.happened(ended(1))
        await asyncio.sleep(5.0)
        assert cluster.urls() == ["http://good/"]
        free.set()
        await asyncio.sleep(1.0)
        assert cluster.urls() == ["http://good/", "http://slow/"]

    played(hooks, story)
