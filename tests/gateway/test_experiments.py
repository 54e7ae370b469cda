"""Lists of experiments, one of them, and what people do to them (REST spec, section 3)."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile

import pytest

from det_contracts import queries
from det_contracts.commands import ChangeExperiment
from det_contracts.events import searcher
from det_contracts.problems import failed_precondition, not_found, unavailable
from services.catalogue import trained_batches
from tests.gateway import stories as story

REQUIRED = [
    "archived",
    "config",
    "id",
    "jobId",
    "name",
    "numTrials",
    "originalConfig",
    "projectId",
    "projectOwnerId",
    "searcherType",
    "startTime",
    "state",
    "username",
]


def test_an_experiment_has_what_clients_require(gateway):
    gateway.apply(story.created(1, labels=["b", "a"], description="first"))
    experiment = gateway.get("/api/v1/experiments/1")["experiment"]
    assert {name for name in REQUIRED if experiment.get(name) is None} == set()
    assert experiment["state"] == "STATE_PAUSED"
    assert experiment["stateReason"] == "submitted by determined"
    assert experiment["startTime"] == "2023-11-14T22:13:20.000000Z"
    assert experiment["endTime"] is None
    assert experiment["searcherType"] == "single"
    assert experiment["labels"] == ["a", "b"]
    assert experiment["jobId"] == "experiment-1"
    assert experiment["checkpointSize"] == "0"
    assert experiment["forkedFrom"] is None
    assert experiment["originalConfig"].startswith("# as written")
    assert experiment["config"]["max_restarts"] == 5


def test_secrets_are_masked_in_both_forms_of_the_configuration(gateway):
    storage = {"type": "s3", "bucket": "b", "access_key": "AKIA-1", "secret_key": "s3cr3t-9"}
    event = story.created(1, checkpoint_storage=storage)
    event = searcher.ExperimentCreated(
        experiment_id=1,
        user="determined",
        config=event.config,
        original_config="secret_key: s3cr3t-9  # keep\n",
        reason="",
    )
    experiment = gateway.apply(event).get("/api/v1/experiments/1")["experiment"]
    assert experiment["config"]["checkpoint_storage"]["secret_key"] == "********"
    assert experiment["originalConfig"] == "secret_key: ********  # keep\n"


def test_active_is_shown_as_what_its_allocations_do(gateway):
    gateway.apply(story.worker_here(), story.created(1), searcher.ExperimentActivated(1, "go"))
    assert gateway.get("/api/v1/experiments/1")["experiment"]["state"] == "STATE_QUEUED"
    gateway.apply(story.trial_created(1), story.run_requested(1))
    gateway.peers.values[queries.Waiting] = {"1.r1.1": "no worker has a free slot"}
    answer = gateway.get("/api/v1/experiments/1")
    assert answer["experiment"]["stateReason"] == "no worker has a free slot"
    assert answer["jobSummary"] == {"state": "STATE_QUEUED", "jobsAhead": -1}
    gateway.apply(story.assigned(1), story.started(1))
    answer = gateway.get("/api/v1/experiments/1")
    assert answer["experiment"]["state"] == "STATE_RUNNING"
    assert answer["experiment"]["stateReason"] == "go"
    assert answer["jobSummary"]["state"] == "STATE_SCHEDULED"
    gateway.apply(searcher.ExperimentPaused(1, "paused by determined"))
    assert gateway.get("/api/v1/experiments/1")["experiment"]["state"] == "STATE_PAUSED"
    gateway.apply(story.allocation_ended(1), searcher.ExperimentActivated(1, "again"))
    assert gateway.get("/api/v1/experiments/1")["experiment"]["state"] == "STATE_QUEUED"
    ended = searcher.ExperimentEnded(1, "ERROR", "all trials failed")
    gateway.apply(story.trial_ended(1, "ERROR"), searcher.ExperimentStopping(1, "STOPPING_ERROR", "x"), ended)
    answer = gateway.get("/api/v1/experiments/1")
    assert answer["experiment"]["state"] == "STATE_ERROR"
    assert answer["experiment"]["stateReason"] == "all trials failed"
    assert answer["experiment"]["progress"] is None
    assert "jobSummary" not in answer


def test_the_page_of_one_experiment_asks_for_one_job_and_not_for_the_queue(gateway):
    gateway.apply(story.worker_here(), story.created(1), searcher.ExperimentActivated(1, "go"))
    gateway.apply(story.trial_created(1), story.run_requested(1))
    questions, answer = [], gateway.peers.values[queries.Jobs]
    gateway.peers.values[queries.Jobs] = lambda query: (questions.append(query), answer(query))[1]
    assert gateway.get("/api/v1/experiments/1")["jobSummary"] == {"state": "STATE_QUEUED", "jobsAhead": -1}
    assert questions == [queries.Jobs(experiment_id=1)]


def test_progress_comes_from_the_searcher_and_may_be_missing(gateway):
    gateway.apply(story.created(1))
    gateway.peers.values[queries.SearchProgress] = {"1": 0.25}
    assert gateway.get("/api/v1/experiments/1")["experiment"]["progress"] == 0.25
    gateway.peers.values[queries.SearchProgress] = unavailable("the searcher service is not running")
    assert gateway.get("/api/v1/experiments/1")["experiment"]["progress"] is None


@pytest.mark.parametrize(
    ("length", "batches"),
    [(100, {1: 30}), ({"batches": 20}, {1: 20}), ({"epochs": 100}, {}), ({"records": 100}, {})],
)
@pytest.mark.parametrize(
    "path", ["experiments/1", "experiments?lean=true", "experiments?sortBy=SORT_BY_PROGRESS", "job-queues"]
)
def test_the_searcher_is_told_the_batches_of_open_trials(gateway, path, length, batches):
    """It never hears of them from a script that reports no progress, and every answer shows its progress."""
    searching = {"name": "random", "metric": "loss", "max_length": length, "max_trials": 3}
    gateway.apply(
        story.worker_here(), story.created(1, searcher=searching), searcher.ExperimentActivated(1, "go")
    )
    for id in (1, 2, 3):
        gateway.apply(story.trial_created(id), *story.running(id, slot=id))
    # Of those, the first goes on, the second ends and the third has validated nothing.
    gateway.apply(story.validated(1, 20, 0.5), story.stored(1, "c", 30))
    gateway.apply(story.validated(2, 40, 0.5), story.trial_ended(2))
    questions = []
    gateway.peers.values[queries.SearchProgress] = lambda query: (questions.append(query), {"1": 0.1})[1]
    gateway.get(f"/api/v1/{path}")
    assert questions
    assert {tuple(query.experiment_ids) for query in questions} == {(1,)}
    assert [query.batches for query in questions] == [batches] * len(questions)


def test_a_question_about_progress_stays_short(gateway, monkeypatch):
    monkeypatch.setattr(trained_batches, "MOST_TRIALS", 2)
    searching = {"name": "random", "metric": "loss", "max_length": 100, "max_trials": 3}
    gateway.apply(story.worker_here(), story.created(1, searcher=searching))
    for id in (1, 2, 3):
        gateway.apply(story.trial_created(id), *story.running(id, slot=id), story.validated(id, 20, 0.5))
    questions = []
    gateway.peers.values[queries.SearchProgress] = lambda query: (questions.append(query), {"1": 0.1})[1]
    assert gateway.get("/api/v1/experiments/1")["experiment"]["progress"] == 0.1
    assert [len(query.batches) for query in questions] == [2]


@pytest.mark.parametrize("action", ["activate", "pause", "cancel", "kill"])
def test_actions_become_commands_in_the_users_name(gateway, action):
    gateway.apply(story.created(1))
    assert gateway.post(f"/api/v1/experiments/1/{action}") == {}
    assert gateway.peers.commands == [ChangeExperiment(experiment_id=1, action=action, user="determined")]


def test_an_action_is_seen_by_the_next_request(gateway):
    gateway.apply(story.created(1))
    gateway.peers.on_command = lambda command: gateway.append(searcher.ExperimentActivated(1, "go"))
    gateway.post("/api/v1/experiments/1/activate")
    answer = gateway.get("/api/v1/experiments", states="STATE_ACTIVE")
    assert [experiment["id"] for experiment in answer["experiments"]] == [1]


def test_refusals_of_the_owner_reach_the_client(gateway):
    def refuse(problem):
        def on_command(command):
            raise problem

        gateway.peers.on_command = on_command

    refuse(failed_precondition("experiment in terminal state"))
    answer = gateway.send("POST", "/api/v1/experiments/1/pause")
    assert answer.status_code == 400
    assert answer.json() == {
        "error": {"code": 9, "reason": "FailedPrecondition", "error": "experiment in terminal state"}
    }
    refuse(not_found("experiment", 9))
    assert gateway.refused(404, "POST", "/api/v1/experiments/9/kill") == "experiment '9' not found"
    refuse(unavailable("the searcher service did not answer within 10 s"))
    answer = gateway.send("POST", "/api/v1/experiments/1/kill")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, 14)


def _ids(gateway, **params):
    return [experiment["id"] for experiment in gateway.get("/api/v1/experiments", **params)["experiments"]]


@pytest.fixture
def five(gateway):
    gateway.apply(
        story.created(1, name="alpha", labels=["x"]),
        story.created(2, "admin", name="Beta", labels=["x", "y"], description="50% done"),
        story.created(3, name="gamma", labels=['q"z']),
        story.created(4, "admin", name="delta"),
        story.created(5, name="alphabet"),
        searcher.ExperimentActivated(2, "go"),
        searcher.ExperimentActivated(3, "go"),
        story.trial_created(1, 3),
        *story.running(1, 0, 3),
    )
    return gateway


@pytest.mark.parametrize(
    ("params", "ids"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"name": "ALPHA"}, [1, 5]),
        ({"description": "0%"}, [2]),
        ({"description": "%"}, [2]),
        ({"labels": "x"}, [1, 2]),
        ({"labels": ["x", "y"]}, [2]),
        ({"labels": 'q"z'}, [3]),
        ({"labels": "q"}, []),
        ({"users": "admin"}, [2, 4]),
        ({"userIds": "2"}, [1, 3, 5]),
        ({"user_ids": "7"}, []),
        ({"states": "STATE_ACTIVE"}, [2, 3]),
        ({"states": "STATE_RUNNING"}, [3]),
        ({"states": ["STATE_QUEUED", "STATE_PAUSED"]}, [1, 2, 4, 5]),
        ({"archived": "true"}, []),
        ({"archived": "false", "limit": "200", "offset": "0", "users": "determined"}, [1, 3, 5]),
        ({"projectId": "1"}, [1, 2, 3, 4, 5]),
        ({"projectId": "2"}, []),
        ({"sortBy": "SORT_BY_NAME"}, [2, 1, 5, 4, 3]),
        ({"sortBy": "SORT_BY_USER", "orderBy": "ORDER_BY_DESC"}, [5, 3, 1, 4, 2]),
        ({"sort_by": "SORT_BY_STATE", "order_by": "ORDER_BY_ASC"}, [1, 4, 5, 2, 3]),
        ({"sortBy": "SORT_BY_NUM_TRIALS", "orderBy": "2"}, [3, 5, 4, 2, 1]),
    ],
)
def test_the_list_is_filtered_and_sorted(five, params, ids):
    assert _ids(five, **params) == ids


def test_a_list_is_filtered_by_so_many_labels(five):
    """Some hundreds were once more than the database takes, and an internal error."""
    assert _ids(five, labels=["x"] * 3000) == [1, 2]
    assert _ids(five, labels=[f"l{n}" for n in range(100)]) == []
    many = {"labels": [f"l{n}" for n in range(101)]}
    assert "100 at most" in five.refused(400, "GET", "/api/v1/experiments", params=many)


def test_the_list_can_be_sorted_by_progress(five):
    five.peers.values[queries.SearchProgress] = {"1": 0.5, "2": 0.1, "4": 0.9}
    assert _ids(five, sortBy="SORT_BY_PROGRESS") == [2, 1, 4, 3, 5]
    assert _ids(five, sortBy="SORT_BY_PROGRESS", orderBy="ORDER_BY_DESC", limit=2) == [4, 1]


@pytest.mark.parametrize(
    ("params", "ids", "bounds"),
    [
        ({"limit": 2}, [1, 2], (0, 2)),
        ({"limit": 2, "offset": 4}, [5], (4, 5)),
        ({"limit": -1, "offset": 3}, [4, 5], (3, 5)),
        ({"limit": -2}, [], (0, 0)),
        ({"offset": 99}, [], (5, 5)),
        ({"offset": -2}, [4, 5], (3, 5)),
        ({"offset": -99, "limit": 1}, [1], (0, 1)),
    ],
)
def test_the_list_of_experiments_has_its_own_paging(five, params, ids, bounds):
    answer = five.get("/api/v1/experiments", **params)
    assert [experiment["id"] for experiment in answer["experiments"]] == ids
    pagination = answer["pagination"]
    assert (pagination["startIndex"], pagination["endIndex"]) == bounds
    assert pagination["total"] == 5


GO_ON = ("duration", "runningTime", "slotHours")
"""Fields that change with time until an experiment has ended."""


def test_a_lean_list_has_no_configurations(five):
    whole, lean = (five.get("/api/v1/experiments", lean=lean)["experiments"] for lean in ("false", "true"))
    left_out, goes_on = {"config": {}, "originalConfig": ""}, dict.fromkeys(GO_ON, 0)
    assert [experiment | left_out | goes_on for experiment in whole] == [
        experiment | goes_on for experiment in lean
    ]
    assert all(experiment["config"]["searcher"] for experiment in whole)


def test_a_list_is_cut_at_a_hundred_unless_asked_for_more(gateway):
    gateway.apply(*(story.created(id) for id in range(1, 104)))
    assert len(_ids(gateway)) == 100
    assert len(_ids(gateway, limit=-1)) == 103


def test_bad_questions_are_400(five):
    path = "/api/v1/experiments"
    assert "whole number" in five.refused(400, "GET", path, params={"limit": "many"})
    assert "sort_by must be SORT_BY_ and one of ID," in five.refused(
        400, "GET", path, params={"sortBy": "SORT_BY_LUCK"}
    )
    assert "order_by" in five.refused(400, "GET", path, params={"orderBy": "UP"})
    assert "archived" in five.refused(400, "GET", path, params={"archived": "maybe"})
    assert five.refused(404, "GET", f"{path}/77") == "experiment '77' not found"
    assert "experiment_id" in five.refused(400, "GET", f"{path}/abc")


def test_the_best_trial_is_found_and_found_again_after_a_rollback(gateway):
    def best():
        experiment = gateway.get("/api/v1/experiments/1")["experiment"]
        return experiment["bestTrialId"], experiment["bestTrialSearcherMetric"]

    path = "/api/v1/experiments/1/searcher/best_searcher_validation_metric"
    gateway.apply(story.created(1), story.trial_created(1), story.trial_created(2))
    gateway.apply(*story.running(1), *story.running(2, 1))
    assert best() == (None, None)
    gateway.refused(404, "GET", path)
    gateway.apply(story.validated(1, 100, 0.5), story.validated(2, 100, 0.5), story.validated(2, 200, None))
    assert best() == (1, 0.5)
    gateway.apply(story.validated(1, 200, 0.1))
    assert best() == (1, 0.1)
    # The second run starts over behind step 100: what the first said at 200 is void.
    gateway.apply(story.allocation_ended(1), *story.running(1, run=2), story.validated(1, 150, 0.7, run=2))
    assert best() == (1, 0.5)
    gateway.apply(story.validated(2, 300, 0.2))
    assert best() == (2, 0.2)
    assert gateway.get(path) == {"metric": 0.2}


def test_larger_may_be_better(gateway):
    searching = {**story.SMALL["searcher"], "metric": "accuracy", "smaller_is_better": False}
    gateway.apply(story.created(1, searcher=searching), story.trial_created(1), story.trial_created(2))
    gateway.apply(story.validated(1, 1, 0.9), story.validated(2, 1, 0.8))
    assert gateway.get("/api/v1/experiments/1")["experiment"]["bestTrialId"] == 1


def test_checkpoints_are_counted_and_sorted(gateway):
    gateway.apply(story.created(1), story.created(2), story.trial_created(1), *story.running(1))
    gateway.apply(story.stored(1, "a" * 8, 100), story.stored(1, "b" * 8, 200), story.stored(1, "b" * 8, 200))
    experiment = gateway.get("/api/v1/experiments/1")["experiment"]
    assert (experiment["checkpointCount"], experiment["checkpointSize"]) == (2, "10000000000")
    assert _ids(gateway, sortBy="SORT_BY_CHECKPOINT_SIZE", orderBy="ORDER_BY_DESC") == [1, 2]
    gateway.apply(story.deleted("a" * 8))
    experiment = gateway.get("/api/v1/experiments/1")["experiment"]
    assert (experiment["checkpointCount"], experiment["checkpointSize"]) == (1, "5000000000")


def test_the_code_can_be_read_back(gateway):
    assert "model definition" in gateway.apply(story.created(1)).refused(
        404, "GET", "/api/v1/experiments/1/model_def"
    )
    content = b"print('hi')\n"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        header = tarfile.TarInfo("train.py")
        header.size = len(content)
        tar.addfile(header, io.BytesIO(content))
    digest = hashlib.sha256(archive.getvalue()).hexdigest()
    archive.seek(0)
    gateway.backend.blobs.put(digest, archive)
    event = story.created(2)
    event = searcher.ExperimentCreated(
        experiment_id=2,
        user="determined",
        config=event.config,
        original_config="",
        context=searcher.Context(digest, 10),
        reason="",
    )
    answer = gateway.apply(event).get("/api/v1/experiments/2/model_def")
    assert base64.b64decode(answer["b64Tgz"]) == archive.getvalue()
