"""The loop of a search runner: asks the method, saves, posts once per event, goes on after a stop."""

import contextlib
import itertools
import json
import logging
import shutil
import types
import uuid

import pytest

from determined import searcher
from determined.common import api
from determined.searcher import _remote_runner, _runner
from tests.sdk.fake_gateway import Status

ONE = "/api/v1/experiments/7"
A = uuid.UUID(int=1)
DONE = {"id": -1, "experimentInactive": {"experimentState": "STATE_COMPLETED"}}
INITIAL = {"id": 1, "initialOperations": {}}
CREATED = {"id": 2, "trialCreated": {"requestId": str(A)}}
VALIDATED = {"id": 3, "validationCompleted": {"requestId": str(A), "metric": 0.5, "validateAfterLength": "5"}}
CLOSED = {"id": 4, "trialClosed": {"requestId": str(A)}}


class OneTrial(searcher.SearchMethod):
    """Trains one trial to 5."""

    def __init__(self):
        self.metrics = []

    def initial_operations(self, searcher_state):
        return [searcher.Create(A, {"lr": 1}), searcher.ValidateAfter(A, 5)]

    def on_trial_created(self, searcher_state, request_id):
        return []

    def on_validation_completed(self, searcher_state, request_id, metric, train_length):
        self.metrics.append([metric, train_length])
        return [searcher.Close(request_id)]

    def on_trial_closed(self, searcher_state, request_id):
        return [searcher.Shutdown()]

    def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
        return [searcher.Shutdown(failure=True)]

    def progress(self, searcher_state):
        return len(searcher_state.trials_closed) / 1

    def save_method_state(self, path):
        (path / "metrics").write_text(json.dumps(self.metrics))

    def load_method_state(self, path):
        self.metrics = json.loads((path / "metrics").read_text())


@pytest.fixture
def master(gateway, client_home, monkeypatch):
    monkeypatch.setenv("DET_MASTER", gateway.url)
    monkeypatch.setattr(_runner, "PAUSED_POLL_S", 0)
    gateway.answer("POST", "/api/v1/experiments", {"experiment": {"id": 7}})
    gateway.answer("POST", f"{ONE}/searcher_operations", {})
    return gateway


def tell(master, *batches):
    master.answer("GET", f"{ONE}/searcher_events", *({"searcherEvents": list(batch)} for batch in batches))


def posts(master):
    bodies = [call.json for call in master.calls_to("POST", f"{ONE}/searcher_operations")]
    return [
        (body["triggeredByEvent"]["id"], [next(iter(op)) for op in body["searcherOperations"]])
        for body in bodies
    ]


def run(tmp_path, method=None):
    runner = searcher.LocalSearchRunner(method or OneTrial(), tmp_path)
    return runner, runner.run({"name": "x", "searcher": {"name": "custom"}})


def test_a_search_from_start_to_end(master, tmp_path):
    tell(master, [INITIAL], [CREATED, VALIDATED], [CLOSED], [DONE])
    runner, id = run(tmp_path)
    assert id == 7
    assert posts(master) == [
        (1, ["createTrial", "trialOperation"]),
        (2, []),
        (3, ["closeTrial"]),
        (4, ["shutDown", "setSearcherProgress"]),
    ]
    assert runner.state.experiment_completed
    assert runner.search_method.metrics == [[0.5, 5]]
    (created,) = [call.json for call in master.calls_to("POST", "/api/v1/experiments")]
    assert (created["activate"], "name: custom" in created["config"]) == (True, True)


@pytest.mark.parametrize(
    ("state", "completed", "failed"),
    [
        ("COMPLETED", True, False),
        ("ERROR", False, True),
        ("CANCELED", False, False),
        ("DELETED", False, False),
    ],
)
def test_how_an_experiment_ended(master, tmp_path, state, completed, failed):
    tell(master, [INITIAL], [{"id": -1, "experimentInactive": {"experimentState": f"STATE_{state}"}}])
    runner, _ = run(tmp_path)
    assert (runner.state.experiment_completed, runner.state.experiment_failed) == (completed, failed)
    assert (tmp_path / "experiment_id.txt").read_text() == "7"


def keys(master):
    return [call.headers["Idempotency-Key"] for call in master.calls_to("POST", "/api/v1/experiments")]


def run_until_it_is_killed(folder, monkeypatch):
    """The experiment has been created, and nothing is kept of that."""

    def save(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(OneTrial, "save", save)
        with pytest.raises(KeyboardInterrupt):
            run(folder)


def test_who_was_stopped_before_it_kept_what_it_created_creates_nothing_twice(master, tmp_path, monkeypatch):
    run_until_it_is_killed(tmp_path, monkeypatch)
    tell(master, [INITIAL], [DONE])
    run(tmp_path)
    first, again = keys(master)
    assert first == again
    # A search of its own, in the same folder, is another one; so is one with another configuration.
    shutil.rmtree(tmp_path / "state")
    shutil.rmtree(tmp_path / "state.old")
    tell(master, [INITIAL], [DONE])
    run(tmp_path)
    assert len(set(keys(master))) == 2


def test_another_configuration_is_another_experiment(master, tmp_path, monkeypatch):
    run_until_it_is_killed(tmp_path, monkeypatch)
    tell(master, [INITIAL], [DONE])
    searcher.LocalSearchRunner(OneTrial(), tmp_path).run({"name": "y", "searcher": {"name": "custom"}})
    assert len(set(keys(master))) == 2


def test_while_it_is_paused_the_runner_waits(master, tmp_path):
    paused = {"id": -1, "experimentInactive": {"experimentState": "STATE_PAUSED"}}
    tell(master, [paused], [INITIAL], [DONE])
    run(tmp_path)
    assert [id for id, _ in posts(master)] == [1]


def test_after_a_stop_it_repeats_its_last_post_and_goes_on(master, tmp_path, caplog):
    tell(master, [INITIAL], [CREATED, VALIDATED])
    master.answer("POST", f"{ONE}/searcher_operations", {}, {}, Status(400, {"error": {"error": "gone"}}), {})
    with pytest.raises(Exception, match="gone"):
        run(tmp_path)
    tell(master, [VALIDATED, CLOSED], [DONE])
    with caplog.at_level(logging.INFO, "determined.searcher"):
        runner, id = run(tmp_path)
    assert id == 7
    assert posts(master)[2:] == [
        (3, ["closeTrial"]),
        (3, ["closeTrial"]),
        (4, ["shutDown", "setSearcherProgress"]),
    ]
    assert runner.search_method.metrics == [[0.5, 5]], "the method was asked once"
    assert "Resubmitting operations for event.id=3" in caplog.text
    assert len(master.calls_to("POST", "/api/v1/experiments")) == 1


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "event 1 not found"), (400, "experiment in incompatible state STOPPING_KILLED")],
)
def test_a_post_that_comes_too_late_is_no_failure(master, tmp_path, status, message):
    refusal = {"error": {"code": 5, "reason": "", "error": message}}
    master.answer("POST", f"{ONE}/searcher_operations", Status(status, refusal))
    tell(master, [INITIAL], [DONE])
    run(tmp_path)


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ("EXITED_REASON_UNSPECIFIED", searcher.ExitedReason.ERRORED),
        ("EXITED_REASON_INVALID_HP", searcher.ExitedReason.INVALID_HP),
        ("EXITED_REASON_USER_CANCELED", searcher.ExitedReason.USER_CANCELED),
    ],
)
def test_early_exits_are_passed_on_with_their_reason(master, tmp_path, monkeypatch, expected, reason):
    reasons = []
    monkeypatch.setattr(
        OneTrial, "on_trial_exited_early", lambda *arguments: reasons.append(arguments[-1]) or []
    )
    exited = {"id": 3, "trialExitedEarly": {"requestId": str(A), "exitedReason": expected}}
    tell(master, [INITIAL, CREATED, exited], [DONE])
    runner, _ = run(tmp_path)
    assert reasons == [reason]
    assert (A in runner.state.failures) is (reason is searcher.ExitedReason.ERRORED)
    assert posts(master)[-1] == (3, ["setSearcherProgress"])


def test_a_state_is_what_was_saved():
    state = searcher.SearcherState()
    state.trials_created, state.trial_progress, state.last_event_id = {A}, {A: 2.0}, 9
    state.experiment_id = 7
    again = searcher.SearcherState()
    again.from_dict(json.loads(json.dumps(state.to_dict())))
    assert vars(again) == vars(state)


def test_a_trial_may_be_created_as_in_0_25():
    with_checkpoint = searcher.Create(A, {"lr": 1}, None)
    assert with_checkpoint.to_wire() == searcher.Create(A, {"lr": 1}).to_wire()
    assert searcher.Create(request_id=A, hparams={}, checkpoint={"uuid": "x"}).checkpoint == {"uuid": "x"}


def test_a_loop_of_ones_own(master, tmp_path):
    tell(master, [INITIAL], [DONE])
    runner = searcher.LocalSearchRunner(OneTrial(), tmp_path)
    session = api.Session(master.url, None, None, None)
    (event,) = runner.get_events(session, 7)
    runner.post_operations(session, 7, event, [searcher.Create(A, {}), searcher.Shutdown()])
    assert posts(master) == [(1, ["createTrial", "shutDown"])]
    runner.run_experiment(7, session, prior_operations=None, sleep_time=0)
    assert runner.state.experiment_completed
    assert runner.state.experiment_id == 7


def test_a_saved_state_is_taken_up_again(master, tmp_path):
    tell(master, [INITIAL, CREATED], [DONE])
    run(tmp_path)
    again = searcher.LocalSearchRunner(OneTrial(), tmp_path)
    assert again.load_state(7) == (7, [])
    assert (again.state.last_event_id, again.state.trials_created) == (2, {A})
    with pytest.raises(ValueError, match="of experiment 7, not of 8"):
        again.load_state(8)
    with pytest.raises(FileNotFoundError):
        searcher.LocalSearchRunner(OneTrial(), tmp_path / "elsewhere").load_state(7)


def test_a_continued_search_is_loaded_by_the_method_that_subclasses_override(master, tmp_path):
    loaded = []

    class Watched(searcher.LocalSearchRunner):
        def load_state(self, experiment_id):
            loaded.append((experiment_id, super().load_state(experiment_id)))
            return loaded[-1][-1]

    tell(master, [INITIAL, CREATED], [DONE])
    Watched(OneTrial(), tmp_path).run({"name": "x", "searcher": {"name": "custom"}})
    assert loaded == []
    tell(master, [DONE])
    Watched(OneTrial(), tmp_path).run({"name": "x", "searcher": {"name": "custom"}})
    assert loaded == [(7, (7, []))]


class Task:
    """The Core API of a task with checkpoints in a folder; `fails` stands for the kill of its process."""

    def __init__(self, folder):
        self.folder, self.fails, self.checkpoint = folder, True, self

    @contextlib.contextmanager
    def store_path(self, metadata):
        if self.fails:
            raise KeyboardInterrupt
        shutil.rmtree(self.folder, ignore_errors=True)
        yield self.folder, "c-1"


def test_a_task_that_is_started_again_creates_nothing_twice_and_its_next_search_is_another(
    master, tmp_path, monkeypatch
):
    info = types.SimpleNamespace(cluster_id="c", task_id="7.1", latest_checkpoint=None)
    monkeypatch.setattr("determined.get_cluster_info", lambda: info)
    task = Task(tmp_path / "checkpoint")

    def search():
        searcher.RemoteSearchRunner(OneTrial(), task).run({"searcher": {"name": "custom"}})

    monkeypatch.setattr(_remote_runner, "_runs", itertools.count())
    with pytest.raises(KeyboardInterrupt):
        search()
    task.fails = False
    monkeypatch.setattr(_remote_runner, "_runs", itertools.count())
    for _ in range(2):
        tell(master, [INITIAL], [DONE])
        search()
    killed, again, second = keys(master)
    assert killed == again != second
