"""The log itself over REST: events with their causes, and how experiments spent their time."""

import pytest

from det_contracts.events import gateway as stated
from det_contracts.events import searcher
from services.why.timeline import timeline
from tests.gateway import stories


@pytest.fixture
def ran(gateway):
    """Experiment 1 waited 10 s, ran 20 s, was paused 30 s by ann, waited 5 s, ran 10 s."""
    for at, events in (
        (0, [stories.worker_here(), stories.created(1), searcher.ExperimentActivated(1, "submitted")]),
        (0, [stories.trial_created(1), stories.run_requested(1)]),
        (10, stories.running(1)[1:]),
        (30, [searcher.ExperimentPaused(1, "paused by ann"), stories.allocation_ended(1)]),
        (60, [searcher.ExperimentActivated(1, "activated by ann")]),
        (65, stories.running(1, run=2)),
        (75, [stories.allocation_ended(1, run=2), stories.trial_ended(1)]),
        (75, [searcher.ExperimentEnded(1, "COMPLETED", "done")]),
    ):
        gateway.apply(*events, at=1_700_000_000.0 + at)
    return gateway


def test_how_an_experiment_spent_its_time(ran):
    answer = ran.get("/api/v1/experiments/1/timeline")
    assert [stretch["what"] for stretch in answer["stretches"]] == [
        "waited",
        "ran",
        "paused",
        "waited",
        "ran",
    ]
    assert answer["seconds"] == {"waited": 15.0, "ran": 30.0, "paused": 30.0}
    assert answer["stretches"][2]["reason"] == "paused by ann"
    assert answer["stretches"][-1]["until"] is not None
    ran.refused(404, "GET", "/api/v1/experiments/77/timeline")


def test_time_that_lasts_has_no_end(gateway):
    gateway.apply(stories.created(1), searcher.ExperimentActivated(1, "submitted"), at=5.0)
    (only,) = gateway.get("/api/v1/experiments/1/timeline")["stretches"]
    assert (only["what"], only["until"]) == ("waited", None)
    assert timeline([]) == []


def test_the_newest_events_of_the_cluster_page_by_page(ran):
    newest = ran.get("/api/v1/events", limit=2)
    assert [step["name"] for step in newest["steps"]] == [
        "searcher.trial.ended",
        "searcher.experiment.ended",
    ], newest
    assert newest["more"]
    before = ran.get("/api/v1/events", limit=1, before=newest["steps"][0]["position"])
    assert before["steps"][0]["position"] < newest["steps"][0]["position"]
    names = [step["name"] for step in ran.get("/api/v1/events", owner="worker")["steps"]]
    assert names
    assert all(name.startswith("worker.") for name in names)
    assert "owner must be one of" in ran.refused(400, "GET", "/api/v1/events", params={"owner": "mars"})


def test_users_are_named(gateway):
    gateway.log_in("admin")
    made = gateway.post("/api/v1/users", {"user": {"username": "ann"}, "password": "secret"})["user"]
    steps = [step["what"] for step in gateway.get("/api/v1/events")["steps"]]
    assert "user ann got a new password" in steps
    assert not [what for what in steps if f"user {made['id']} " in what]


def test_what_one_owner_stated_is_found_behind_much_of_others(ran, monkeypatch):
    monkeypatch.setattr("services.why.reader.SEARCH_WINDOW", 4)
    steps = ran.get("/api/v1/events", owner="worker", limit=1000)["steps"]
    ran.apply(*(searcher.ExperimentPaused(1, f"again {n}") for n in range(40)))
    answer = ran.get("/api/v1/events", owner="worker", limit=1000)
    assert answer["steps"] == steps
    assert not answer["more"]
    newest = ran.get("/api/v1/events", owner="worker", limit=1)
    assert (newest["steps"], newest["more"]) == (steps[-1:], True)
    # Where there is nothing far and wide, it is said that more may lie further back.
    monkeypatch.setattr("services.why.reader.MAX_OWNER_READS", 2)
    assert ran.get("/api/v1/events", owner="worker") == {"steps": [], "more": True}


def test_one_event_with_what_it_came_of(ran):
    end = ran.get("/api/v1/events", limit=1)["steps"][0]
    answer = ran.get(f"/api/v1/events/{end['position']}")
    assert answer["steps"][0]["what"] == "experiment 1 completed"
    assert answer["record"]["data"]["experiment_id"] == 1
    assert answer["subject"] == "control.searcher.experiment.1.ended"
    for position in (0, end["position"] + 99):
        ran.refused(404, "GET", f"/api/v1/events/{position}")


def test_no_event_shows_a_secret(gateway):
    storage = {"type": "s3", "bucket": "b", "access_key": "key-of-ann", "secret_key": "hidden"}
    gateway.apply(stories.created(1, checkpoint_storage=storage))
    gateway.apply(stated.PasswordSet(user_id=1, salt="beef", hashed="f00d", reason="asked"))
    for position in (1, 2):
        text = str(gateway.get(f"/api/v1/events/{position}")["record"])
        assert "hidden" not in text
        assert "key-of-ann" not in text
        assert "beef" not in text
        assert "f00d" not in text
