"""The page behind the address that is printed."""

from __future__ import annotations

import pytest

from det_contracts import queries
from det_contracts.events import searcher
from services.kit import conditions as names
from services.rest_routes.pages import page
from tests.gateway import stories as story


@pytest.fixture(autouse=True)
def not_built(monkeypatch, tmp_path):
    """The plain page is for where the web UI was not built."""
    monkeypatch.setattr(page, "BUILT", tmp_path / "nowhere")


def test_the_page_is_there_before_anything_else(gateway):
    for path in ("/", "/det", "/det/", "/det/experiments/1"):
        answer = gateway.send("GET", path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
        assert "No experiment yet" in answer.text
        assert "cluster test" in answer.text


def test_it_shows_nothing_without_a_session(gateway):
    gateway.apply(story.created(1, name="secret plan"))
    del gateway.client.headers["Authorization"]
    assert "secret plan" not in gateway.send("GET", "/").text
    assert gateway.send("GET", "/det/live").status_code == 401


def test_it_says_what_is_wrong_with_the_cluster(gateway):
    assert "Something is wrong" not in gateway.send("GET", "/det/live").text
    gateway.conditions.set_condition(
        names.NOBODY_LEADS, {"searcher": "nobody decides for the <b>searcher</b>"}
    )
    text = gateway.send("GET", "/det/live").text
    assert "nobody decides for the &lt;b&gt;searcher&lt;/b&gt;, since 20" in text


def test_it_shows_experiments_best_trials_and_workers(gateway):
    gateway.apply(story.worker_here(), story.created(1, name="<b>search</b>"))
    gateway.apply(searcher.ExperimentActivated(1, "go"), story.trial_created(1, lr=0.125))
    gateway.apply(*story.running(1, 1), story.validated(1, 30, 0.25))
    gateway.peers.values[queries.SearchProgress] = {"1": 0.5}
    text = gateway.send("GET", "/det/live").text
    assert "&lt;b&gt;search&lt;/b&gt;" in text
    assert "<b>" not in text
    for part in ("running", "50%", "lr 0.125", "0.25", "w-1", "1 of 2", "cpu 1: trial 1"):
        assert part in text, part
