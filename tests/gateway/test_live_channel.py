"""What pages are told: which of the things that they look at have changed."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import pytest

from det_contracts import subjects
from services.kit.log import Draft
from services.live import channel, series
from services.live.topics import SERIES
from services.web.errors import unauthenticated
from tests.gateway import stories as story
from tests.gateway.harness import Harness

API = "/api/v1"


class Page:
    """A page that is open: `next_topics` waits for the topics that it is notified of next."""

    def __init__(self, gateway, *topics, **options):
        self._gateway = gateway
        self._events = gateway.backend.live.events(topics, **options)
        self.last_id = None

    def fields(self):
        text = self._gateway.run(anext(self._events)).decode()
        return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line[1:])

    def next_topics(self):
        fields = self.fields()
        self.last_id = int(fields["id"])
        return set(json.loads(fields["data"])["topics"])

    def close(self):
        self._gateway.run(self._events.aclose())


@pytest.fixture
def page(gateway):
    pages = []

    def open_page(*topics):
        pages.append(Page(gateway, *topics))
        assert pages[-1].next_topics() == set(topics)
        return pages[-1]

    yield open_page
    for subscriber in pages:
        subscriber.close()


def test_a_page_is_notified_of_its_topics_only(gateway, page):
    first, second = page("experiments", "experiment.1", "experiment.2"), page("experiment.2", "cluster")
    gateway.apply(story.created(1))
    assert first.next_topics() == {"experiments", "experiment.1"}
    gateway.apply(story.created(2))
    assert first.next_topics() == {"experiments", "experiment.2"}
    assert second.next_topics() == {"experiment.2"}
    gateway.apply(story.worker_here())
    assert second.next_topics() == {"cluster"}


def test_trials_and_checkpoints_concern_their_experiment(gateway, page):
    gateway.apply(story.created(1))
    subscriber = page("experiment.1", "trial.1", "queue")
    gateway.apply(story.trial_created(1), story.stored(1, "c-1", 10), story.run_requested(1))
    assert subscriber.next_topics() == {"experiment.1", "trial.1", "queue"}


def test_many_changes_become_one_notification(gateway, page):
    subscriber = page("experiments")
    gateway.apply(*(story.created(id) for id in range(1, 50)))
    assert subscriber.next_topics() == {"experiments"}
    assert not subscriber._events.ag_running


def test_an_event_tells_all_that_its_id_stands_for(gateway, page, monkeypatch):
    subscriber = page("experiment.1", "experiment.2")
    subscribed, turn = asyncio.Event(), asyncio.Event()

    async def take():
        subscribed.set()
        await turn.wait()

    monkeypatch.setattr(gateway.backend.live._turns, "take", take)

    async def begin():
        telling = asyncio.ensure_future(anext(subscriber._events))
        await asyncio.sleep(0)
        return telling

    telling = gateway.run(begin())
    gateway.apply(story.created(1))
    gateway.run(subscribed.wait())
    # Another change, while many others are told of theirs.
    gateway.apply(story.created(2))
    turn.set()
    event = gateway.run(telling).decode()
    again = Page(gateway, "experiment.1", "experiment.2", after=int(event.split()[1]))
    answer = set(json.loads(event.split("data: ")[1])["topics"]) | again.next_topics()
    assert answer == {"experiment.1", "experiment.2"}
    again.close()


def test_reports_are_notified_twice(gateway, page, monkeypatch):
    monkeypatch.setattr(series, "REPEAT_S", 1.0)
    gateway.apply(story.created(1), story.trial_created(1))
    subscriber = page("trial.1.series")

    gateway.run(gateway.journal.append(Draft(subjects.reports(1), b"{}", "r-1")))
    assert subscriber.next_topics() == {"trial.1.series"}
    assert subscriber.next_topics() == {"trial.1.series"}


def test_no_report_falls_between_what_the_first_page_of_a_chart_asks_for_and_what_is_read(
    gateway, monkeypatch
):
    gateway.apply(story.created(1), story.trial_created(1))
    bounds, reported = gateway.journal.bounds, []

    async def report_first(stream):
        if stream == subjects.REPORTS:
            reported.append(await gateway.journal.append(Draft(subjects.reports(1), b"{}", "r-1")))
        return await bounds(stream)

    monkeypatch.setattr(gateway.journal, "bounds", report_first)
    subscriber = Page(gateway, "trial.1.series")

    async def reported_by_first_event():
        await anext(subscriber._events)
        return list(reported)

    # It asks at its first event, and so after that report, which is not read any more.
    assert gateway.run(reported_by_first_event())
    gateway.run(gateway.journal.append(Draft(subjects.reports(1), b"{}", "r-2")))
    assert subscriber.next_topics() == {"trial.1.series"}
    subscriber.close()


def test_a_disconnected_page_is_unsubscribed(gateway, page):
    subscriber = page("trial.1.series")
    live = gateway.backend.live
    assert live._readers
    assert live._curves.running
    subscriber.close()
    gateway.run(_until(lambda: not live._curves.running))
    assert not live._readers
    assert next(iter(live.readings())).values == {(): 0}


async def _until(true):
    while not true():
        await asyncio.sleep(0.01)


def test_a_logged_out_page_gets_no_more_notifications(gateway, monkeypatch):
    monkeypatch.setattr(channel, "RECHECK_S", 0.0)
    looks = []

    def recheck():
        looks.append(None)
        if len(looks) == 2:
            raise unauthenticated("this session is closed")

    subscriber = Page(gateway, "experiments", recheck=recheck)
    assert subscriber.next_topics() == {"experiments"}
    for id in (1, 2):
        gateway.apply(story.created(id))
        fields = subscriber.fields()
    assert fields["event"] == "ended"
    assert "this session is closed" in fields["data"]
    with pytest.raises(StopAsyncIteration):
        gateway.run(anext(subscriber._events))
    assert not gateway.backend.live._readers


def test_a_failed_read_of_reports_begins_again(gateway, page, monkeypatch):
    monkeypatch.setattr(series, "RETRY_S", 0.05)
    gateway.apply(story.created(1), story.trial_created(1))
    bounds, failures = gateway.journal.bounds, [ValueError("never heard of"), asyncio.CancelledError()]

    async def failing(stream):
        if failures:
            raise failures.pop(0)
        return await bounds(stream)

    monkeypatch.setattr(gateway.journal, "bounds", failing)
    subscriber = page("trial.1.series")
    # Once after each failure: what came meanwhile was not seen.
    assert subscriber.next_topics() == {"trial.1.series"}
    gateway.run(_until(lambda: not failures))
    gateway.run(_until(lambda: gateway.backend.live._curves.running))
    gateway.run(gateway.journal.append(Draft(subjects.reports(1), b"{}", "r-1")))
    assert subscriber.next_topics() == {"trial.1.series"}


def test_a_reconnected_page_is_notified_of_what_it_missed_by_any_gateway(gateway, tmp_path):
    (tmp_path / "other").mkdir()
    other = Harness(tmp_path / "other", replica_of=gateway)
    topics = ("experiments", "experiment.1", "experiment.2", "cluster", "trial.1.series")
    gateway.apply(story.created(1), story.trial_created(1))
    subscriber = Page(gateway, *topics)
    assert subscriber.next_topics() == set(topics)
    subscriber.close()
    gateway.apply(story.created(2))
    again = Page(other, *topics, after=subscriber.last_id)
    assert again.next_topics() == {"experiments", "experiment.2", "trial.1.series"}
    gateway.apply(story.worker_here())
    assert again.next_topics() == {"cluster"}
    again.close()
    nothing = Page(gateway, *topics, after=again.last_id)
    assert nothing.next_topics() == {"trial.1.series"}
    nothing.close()
    other.close()


def test_a_page_that_missed_too_many_changes_is_notified_of_all_its_topics(gateway, monkeypatch):
    monkeypatch.setattr(channel, "MAX_REMEMBERED", 2)
    topics = ("experiments", "cluster", "models")
    subscriber = Page(gateway, *topics)
    subscriber.next_topics()
    for id in range(1, 5):
        gateway.apply(story.created(id))
    again = Page(gateway, *topics, after=subscriber.last_id)
    assert again.next_topics() == set(topics)
    for each in (subscriber, again):
        each.close()


def test_a_reader_that_does_not_read_holds_no_more_than_its_topics(gateway):
    slow = Page(gateway, "experiments", "experiment.7", "trial.1.series")
    slow.next_topics()
    (reader,) = gateway.backend.live._readers["experiments"]
    for _ in range(10_000):
        gateway.backend.live._notify(["experiments", "experiment.7", "experiment.8", "cluster"])
    assert reader._changed == {"experiments", "experiment.7"}
    assert slow.next_topics() == {"experiments", "experiment.7"}
    slow.close()


def test_a_thousand_readers_take_little(gateway):
    gateway.apply(*(story.created(id) for id in range(1, 11)))
    live = gateway.backend.live
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        topics = ["experiments", "cluster", *(f"experiment.{id}" for id in range(1, 11))]
        topics += [f"trial.{id}{SERIES}" for id in range(1, 11)]
        readers = [live.events(topics) for _ in range(1000)]
        for reader in readers:
            gateway.run(anext(reader))
        gateway.apply(*(story.worker_here(),))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert next(iter(live.readings())).values == {(): 1000}
    assert used < 20_000_000
    for reader in readers:
        gateway.run(reader.aclose())
    assert not live._readers


def test_topics_are_named(gateway):
    assert "topics" in gateway.refused(400, "GET", "/api/v1/live")
    many = {"topics": ",".join(f"trial.{n}" for n in range(500))}
    assert "topics" in gateway.refused(400, "GET", "/api/v1/live", params=many)


def test_one_user_has_so_many_streams(gateway):
    streams = gateway.backend.limits.streams
    for _ in range(gateway.backend.settings.streams_each):
        gateway.run(streams.acquire("determined"))
    for path in (f"{API}/live?topics=experiments", f"{API}/master/logs"):
        answer = gateway.send("GET", path)
        assert answer.status_code == 429, answer.text
        assert int(answer.headers["Retry-After"]) > 0
        assert "streams and waiting requests" in answer.json()["error"]["error"]
    streams.release("determined")
    assert gateway.send("GET", f"{API}/master/logs").status_code == 200
