"""What pages are told: which of the things that they look at have changed."""

from __future__ import annotations

import json

import pytest

from det_contracts import subjects
from services.gateway import live
from services.kit.log import Draft
from tests.gateway import stories as story


class Page:
    """A page that is open: `told` waits for what it is told next."""

    def __init__(self, gateway, *topics):
        self._gateway = gateway
        self._events = gateway.backend.live.events(topics)

    def told(self):
        text = self._gateway.run(anext(self._events)).decode()
        fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line[1:])
        return set(json.loads(fields["data"])["topics"])

    def close(self):
        self._gateway.run(self._events.aclose())


@pytest.fixture
def page(gateway):
    pages = []

    def open_page(*topics):
        pages.append(Page(gateway, *topics))
        assert pages[-1].told() == set(topics)
        return pages[-1]

    yield open_page
    for one in pages:
        one.close()


def test_a_page_is_told_what_it_looks_at_and_nothing_else(gateway, page):
    one, other = page("experiments", "experiment.1", "experiment.2"), page("experiment.2", "cluster")
    gateway.given(story.created(1))
    assert one.told() == {"experiments", "experiment.1"}
    gateway.given(story.created(2))
    assert one.told() == {"experiments", "experiment.2"}
    assert other.told() == {"experiment.2"}
    gateway.given(story.worker_here())
    assert other.told() == {"cluster"}


def test_trials_and_checkpoints_concern_their_experiment(gateway, page):
    gateway.given(story.created(1))
    one = page("experiment.1", "trial.1", "queue")
    gateway.given(story.trial_created(1), story.stored(1, "c-1", 10), story.run_requested(1))
    assert one.told() == {"experiment.1", "trial.1", "queue"}


def test_many_changes_are_told_at_once(gateway, page):
    one = page("experiments")
    gateway.given(*(story.created(id) for id in range(1, 50)))
    assert one.told() == {"experiments"}
    assert not one._events.ag_running


def test_reports_are_told_twice(gateway, page, monkeypatch):
    monkeypatch.setattr(live, "AGAIN_S", 0.3)
    gateway.given(story.created(1), story.trial_created(1))
    one = page("trial.1.series")

    gateway.run(gateway.journal.append(Draft(subjects.reports(1), b"{}", "r-1")))
    assert one.told() == {"trial.1.series"}
    assert one.told() == {"trial.1.series"}


def test_who_goes_away_is_forgotten(gateway, page):
    one = page("trial.1.series")
    assert gateway.backend.live._readers
    assert gateway.backend.live._reports is not None
    one.close()
    assert not gateway.backend.live._readers
    assert gateway.backend.live._reports is None


def test_topics_are_named(gateway):
    assert "topics" in gateway.refused(400, "GET", "/api/v1/live")
    many = {"topics": ",".join(f"trial.{n}" for n in range(500))}
    assert "topics" in gateway.refused(400, "GET", "/api/v1/live", params=many)
