"""What owners are asked: they must have read what the gateway has shown, or was told to have been stored."""

import pytest

from det_contracts import queries
from tests.gateway import stories as story

ONE = "/api/v1/experiments/1"
NUMBERS = "save_experiment_best=1&save_trial_best=2&save_trial_latest=3"


@pytest.mark.parametrize(
    ("query", "path", "value"),
    [
        (queries.SearchRungs, f"{ONE}/rungs", {"brackets": []}),
        # Events that were answered would be answered a second time.
        (queries.SearcherEvents, f"{ONE}/searcher_events", {"state": "PAUSED", "events": []}),
        (queries.PreviewRetention, f"/experiments/1/preview_gc?{NUMBERS}", []),
        (queries.Pools, "/api/v1/resource-pools", None),
        (queries.Jobs, "/api/v1/job-queues-v2?resourcePool=default", None),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_owners_have_read_what_the_gateway_has(gateway, query, path, value):
    gateway.log_in("admin")
    gateway.apply(story.worker_here(), story.created(1, searcher={"name": "custom", "metric": "loss"}))
    if value is not None:
        gateway.peers.values[query] = value
    answer = gateway.send("GET", path)
    assert answer.status_code == 200, answer.text
    assert gateway.peers.asked_at[query] == len(gateway.journal.streams["CONTROL"])


def test_whether_a_pool_can_hold_a_task_is_asked_of_who_knows_the_pool_as_it_is(gateway):
    gateway.log_in("admin")
    gateway.apply(story.worker_here(slots=1))
    end = len(gateway.journal.streams["CONTROL"])
    gateway.post("/api/v1/commands", {"config": {"entrypoint": "true", "resources": {"slots": 1}}})
    assert gateway.peers.asked_at[queries.Fits] >= end
