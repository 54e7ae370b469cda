"""A trial as the client sees it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from determined.common.api import errors
from determined.experimental import client
from tests.sdk.fake_gateway import Lines

PATH = "/api/v1/trials/3"


@pytest.fixture
def trial(connection):
    return connection.get_trial(3)


def line(number, message):
    return {"result": {"id": number, "timestamp": f"2026-01-01T00:00:{number:02d}Z", "message": message}}


LINES = [line(number, f"line {number}\n" if number % 2 else f"line {number}") for number in range(5)]
TEXTS = [f"line {number}\n" for number in range(5)]


def test_logs_are_whole_lines(master, trial):
    master.answer("GET", f"{PATH}/logs", Lines(LINES))
    assert list(trial.logs()) == TEXTS


def test_followed_logs_are_the_same(master, trial):
    master.answer("GET", f"{PATH}/logs", Lines(LINES[:3], cut=True), Lines(LINES[2:]))
    master.answer("GET", PATH, {"trial": {"state": "STATE_RUNNING"}}, {"trial": {"state": "STATE_COMPLETED"}})
    assert list(trial.logs(follow=True)) == TEXTS


def test_head_and_tail(master, trial):
    master.answer("GET", f"{PATH}/logs", Lines(LINES[:2]), Lines(LINES[:2:-1]))
    assert list(trial.logs(head=2)) == TEXTS[:2]
    assert list(trial.logs(tail=2)) == TEXTS[3:]
    head, tail = master.calls_to("GET", f"{PATH}/logs")
    assert head.query == {"limit": ["2"]}
    assert tail.query == {"limit": ["2"], "orderBy": ["ORDER_BY_DESC"]}
    assert list(trial.logs(head=0)) == list(trial.logs(tail=0)) == []


def test_log_filters(master, trial):
    master.answer("GET", f"{PATH}/logs", Lines([]))
    list(trial.logs(container_ids=["c"], rank_ids=[0, 1], stdtypes=["stderr"], min_level="ERROR"))
    assert master.calls[-1].query == {
        "containerIds": ["c"],
        "rankIds": ["0", "1"],
        "stdtypes": ["stderr"],
        "levels": ["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"],
    }
    list(trial.logs(min_level=client.LogLevel.CRITICAL))
    assert master.calls[-1].query == {"levels": ["LOG_LEVEL_CRITICAL"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"follow": True, "head": 1},
        {"follow": True, "tail": 1},
        {"head": 1, "tail": 1},
        {"head": -1},
        {"tail": -1},
    ],
)
def test_contradicting_extents_of_logs(trial, wrong):
    with pytest.raises(ValueError, match=r"at most one|negative"):
        trial.logs(**wrong)


@pytest.fixture
def scored(lists, checkpoint_record):
    checkpoints = [
        checkpoint_record("a", steps=10, loss=0.5, acc=0.1),
        checkpoint_record("b", steps=30, loss=0.2, acc=0.9),
        checkpoint_record("c", steps=20, loss=0.3, acc=0.5),
        checkpoint_record("d", steps=40, state="DELETED", loss=0.1, acc=0.2),
        # No number that can be ranked.
        checkpoint_record("e", steps=5, acc=10**400),
    ]
    lists(f"{PATH}/checkpoints", "checkpoints", checkpoints)


def uuids(checkpoints):
    return [checkpoint.uuid for checkpoint in checkpoints]


def test_select_a_checkpoint(scored, trial):
    assert trial.select_checkpoint(latest=True).uuid == "b"
    assert trial.select_checkpoint(best=True).uuid == "b"
    assert trial.select_checkpoint(best=True, sort_by="acc", smaller_is_better=True).uuid == "a"
    assert trial.select_checkpoint(best=True, sort_by="acc", smaller_is_better=False).uuid == "b"
    assert trial.top_checkpoint().uuid == "b"
    assert trial.top_checkpoint("acc", True).uuid == "a"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"latest": True, "best": True},
        {"best": True, "uuid": "a"},
        {"best": True, "sort_by": "acc"},
        {"best": True, "smaller_is_better": True},
        {"latest": True, "sort_by": "acc", "smaller_is_better": True},
    ],
)
def test_contradicting_selections(trial, wrong):
    with pytest.raises(AssertionError):
        trial.select_checkpoint(**wrong)


def test_nothing_to_select(lists, trial):
    lists(f"{PATH}/checkpoints", "checkpoints", [])
    for wanted in ({"latest": True}, {"best": True}):
        with pytest.raises(ValueError, match="trial 3 has no"):
            trial.select_checkpoint(**wanted)


def test_a_checkpoint_by_its_id(master, trial, checkpoint_record):
    master.answer("GET", "/api/v1/checkpoints/c", {"checkpoint": checkpoint_record("c", trial=3)})
    master.answer("GET", "/api/v1/checkpoints/x", {"checkpoint": checkpoint_record("x", trial=4)})
    assert trial.select_checkpoint(uuid="c").uuid == "c"
    # Also one of another trial: the published client asks for the checkpoint and nothing else.
    assert trial.select_checkpoint(uuid="x").training.trial_id == 4
    with pytest.raises(errors.NotFoundException, match="y"):
        trial.select_checkpoint(uuid="y")


def test_checkpoints_by_metric(scored, trial):
    assert uuids(trial.get_checkpoints()) == ["d", "b", "c", "a", "e"]
    assert uuids(trial.get_checkpoints("acc", client.CheckpointOrderBy.ASC)) == ["a", "d", "c", "b", "e"]
    assert uuids(trial.get_checkpoints("acc", client.CheckpointOrderBy.DESC)) == ["b", "c", "d", "a", "e"]


def test_checkpoints_sorted_by_the_server(master, scored, trial):
    checkpoints = trial.get_checkpoints(client.CheckpointSortBy.BATCH_NUMBER, client.CheckpointOrderBy.DESC)
    assert uuids(checkpoints) == ["a", "b", "c", "d", "e"]
    query = master.calls[-1].query
    assert (query["sortBy"], query["orderBy"]) == (["SORT_BY_BATCH_NUMBER"], ["ORDER_BY_DESC"])


def test_checkpoints_need_both_or_neither(trial):
    with pytest.raises(AssertionError):
        trial.get_checkpoints(sort_by="acc")
    with pytest.raises(AssertionError):
        trial.get_checkpoints(order_by=client.CheckpointOrderBy.ASC)


def test_kill(master, trial):
    master.answer("POST", f"{PATH}/kill", {})
    assert trial.kill() is None


REPORT = {
    "trialId": 3,
    "trialRunId": 1,
    "totalBatches": 8,
    "endTime": "2026-01-02T03:04:05.987Z",
    "metrics": {"avgMetrics": {"loss": 1.5}, "batchMetrics": [{"loss": 1}, {"loss": 2}]},
}


def test_streams_of_metrics(master, connection, trial):
    master.answer(
        "GET", "/api/v1/trials/metrics/training_metrics", Lines([{"result": {"metrics": [REPORT]}}])
    )
    expected = client.TrainingMetrics(
        8,
        trial_id=3,
        trial_run_id=1,
        end_time=datetime(2026, 1, 2, 3, 4, 5, 987_000, tzinfo=UTC),
        metrics={"loss": 1.5},
        batch_metrics=[{"loss": 1}, {"loss": 2}],
    )
    assert list(trial.stream_training_metrics()) == [expected]
    assert list(connection.stream_trials_training_metrics([3, 4])) == [expected]
    assert master.calls[-1].query == {"trialIds": ["3", "4"]}
    bare = {**REPORT, "metrics": {"avgMetrics": {"loss": 1}, "batchMetrics": []}}
    master.answer(
        "GET", "/api/v1/trials/metrics/validation_metrics", Lines([{"result": {"metrics": [bare]}}])
    )
    (report,) = trial.stream_validation_metrics()
    assert (type(report), report.steps_completed, report.batch_metrics) == (client.ValidationMetrics, 8, None)
    assert list(connection.stream_trials_validation_metrics([3])) == [report]


def test_metric_records():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    record = client.TrainingMetrics(trial_id=1, trial_run_id=2, steps_completed=3, end_time=at, metrics={})
    assert record.total_batches == record.steps_completed == 3
    assert record == client.TrainingMetrics(3, trial_id=1, trial_run_id=2, end_time=at, metrics={})
    assert record != client.TrainingMetrics(4, trial_id=1, trial_run_id=2, end_time=at, metrics={})
    assert record != client.ValidationMetrics(3, trial_id=1, trial_run_id=2, end_time=at, metrics={})
    assert "total_batches=3" in repr(record)
    with pytest.raises(TypeError, match="exactly one"):
        client.TrainingMetrics(trial_id=1, trial_run_id=2, end_time=at, metrics={})
