import logging
import os
import signal
import threading

import pytest

import determined as det
from determined import core
from determined.core import _stack_dump, _storage_choice
from determined.storage import S3StorageManager
from tests.sdk.core.cluster_files import RENDEZVOUS
from tests.sdk.core.fake_transport import FakeTransport


def test_a_trial_gets_the_real_parts(on_cluster, tmp_path):
    transport = FakeTransport([20])
    on_cluster(transport)
    with core.init() as context:
        assert context.info is det.get_cluster_info()
        assert type(context.train) is core.TrainContext
        assert (context.train._trial_id, context.train._exp_id, context.train._run_id) == (7, 3, 1)
        assert context.train.get_tensorboard_path().name == "tensorboard-3.c0ffee.1-0"
        assert context.searcher.get_configured_units() is core.Unit.BATCHES
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, storage_id):
            assert path == tmp_path / "storage" / storage_id
        context.train.report_training_metrics(2, {"x": 1})
        assert context.preempt.should_preempt() is False
    assert transport.kinds() == ["checkpoint", "training"], "leaving stores what was pending"
    assert [transport.calls[0], transport.calls[-1]] == ["start", "close"]


def test_a_script_is_told_which_metric_the_search_lacks(on_cluster, caplog):
    on_cluster(FakeTransport())
    core.init().train.report_validation_metrics(1, {"accuracy": 1})
    assert "names 'loss' as searcher.metric" in caplog.text


def test_reports_and_checkpoints_work_without_start(on_cluster):
    transport = FakeTransport()
    on_cluster(transport)
    context = core.init()
    context.train.report_training_metrics(1, {"x": 1})
    with context.checkpoint.store_path({"steps_completed": 1}):
        pass
    with pytest.raises(RuntimeError, match="before"):
        context.preempt.should_preempt()
    context.close()
    context.close()
    assert transport.kinds() == ["training", "checkpoint"]


@pytest.mark.parametrize(
    "description",
    [
        {"slot_ids": [0, 1]},
        {"rendezvous": {**RENDEZVOUS, "container_addrs": ["a", "b"], "container_slot_counts": [1, 1]}},
    ],
)
def test_several_slots_need_a_distributed_context(on_cluster, description):
    on_cluster(FakeTransport(), **description)
    with pytest.raises(ValueError, match="you must provide a valid DistributedContext for a multi-slot task"):
        core.init()


def test_start_twice_is_an_error(on_cluster):
    on_cluster(FakeTransport())
    with core.init() as context, pytest.raises(RuntimeError, match="twice"):
        context.start()


def test_other_tasks_get_the_parts_of_a_laptop(on_cluster, tmp_path):
    on_cluster(FakeTransport(), task_type="NOTEBOOK", slot_ids=[])
    with core.init() as context:
        assert type(context.train) is core.DummyTrainContext
        assert context.info.task_type == "NOTEBOOK"
        with context.checkpoint.store_path() as (path, _):
            assert path.parent == tmp_path / "data" / "determined"


def report_then_raise(error, meanwhile=lambda: None):
    with core.init() as context:
        context.train.report_training_metrics(1, {"x": 1})
        meanwhile()
        raise error


@pytest.mark.parametrize("cluster", [True, False])
def test_invalid_hp_ends_the_trial_cleanly(on_cluster, fresh_info, caplog, cluster):
    transport = FakeTransport()
    if cluster:
        on_cluster(transport)
    with caplog.at_level(logging.INFO), pytest.raises(SystemExit) as left:
        report_then_raise(det.InvalidHP("batch size 0"))
    assert left.value.code == 0
    assert "batch size 0" in caplog.text
    if cluster:
        assert transport.log[-1] == ("exit_early", "EXITED_REASON_INVALID_HP")
        assert transport.kinds()[0] == "training"
        assert transport.calls[-1] == "close"


def test_other_exceptions_pass_and_what_was_reported_is_stored(on_cluster):
    transport = FakeTransport()
    on_cluster(transport)
    with pytest.raises(ZeroDivisionError):
        report_then_raise(ZeroDivisionError())
    assert transport.kinds() == ["training"]


def test_a_refusal_nobody_saw_is_raised_on_leaving(on_cluster):
    transport = FakeTransport()
    on_cluster(transport)
    with pytest.raises(RuntimeError, match="conflicting key: x"), core.init():
        transport.refusal = RuntimeError("conflicting key: x")


def test_a_refusal_does_not_hide_an_exception(on_cluster, caplog):
    transport, refusal = FakeTransport(), RuntimeError("conflicting key: x")
    on_cluster(transport)
    with pytest.raises(ZeroDivisionError):
        report_then_raise(ZeroDivisionError(), lambda: setattr(transport, "refusal", refusal))
    assert "conflicting key: x" in caplog.text


def test_off_cluster_everything_stays_local(fresh_info, tmp_path, caplog):
    with caplog.at_level(logging.INFO), core.init() as context:
        assert context.info is None
        context.train.report_validation_metrics(1, {"x": None})
        with context.checkpoint.store_path() as (path, storage_id):
            (path / "x").write_text("x")
        for op in context.searcher.operations():
            op.report_completed(1)
        assert context.preempt.should_preempt() is False
        assert context.distributed.size == 1
    assert (tmp_path / "data" / "determined" / storage_id / "x").exists()
    assert str(tmp_path / "data" / "determined") in caplog.text


def test_preempt_mode_is_passed_on_off_cluster(fresh_info):
    with core.init(preempt_mode=core.PreemptMode.ChiefOnly) as context:
        assert context.preempt._mode is core.PreemptMode.ChiefOnly


@pytest.mark.parametrize(
    ("storage", "error", "text"),
    [
        ({"type": "shared_fs", "host_path": "/x"}, ValueError, "Use a string or a configuration file"),
        ({"bucket": "b"}, ValueError, "type"),
        (3, TypeError, "int"),
        ("ftp://host/x", ValueError, "ftp"),
        ("/x?y=1", ValueError, "malformed"),
        ("file://host/x", ValueError, "host"),
        ("/x#frag", ValueError, "malformed"),
    ],
)
@pytest.mark.parametrize("cluster", [True, False])
def test_impossible_storage(on_cluster, fresh_info, storage, error, text, cluster):
    if cluster:
        on_cluster(FakeTransport())
    with pytest.raises(error, match=text):
        core.init(checkpoint_storage=storage)


def test_given_storage_wins(on_cluster, tmp_path):
    on_cluster(FakeTransport())
    for storage in (str(tmp_path / "mine"), f"file://{tmp_path}/mine"):
        context = core.init(checkpoint_storage=storage)
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            assert path.parent == tmp_path / "mine"
    assert isinstance(_storage_choice.chosen_storage("s3://bucket/prefix"), S3StorageManager)
    assert isinstance(_storage_choice.chosen_storage({"type": "s3", "bucket": "b"}), S3StorageManager)


def test_sigusr1_shows_the_stack_and_calls_the_earlier_handler(fresh_info, monkeypatch, capsys):
    before = signal.getsignal(signal.SIGUSR1)
    heard = []
    monkeypatch.setattr(_stack_dump, "_previous", None)
    signal.signal(signal.SIGUSR1, lambda *_: heard.append("earlier"))
    try:
        core.init()
        core.init()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert heard == ["earlier"]
        assert "test_sigusr1_shows_the_stack" in capsys.readouterr().err
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_init_works_outside_of_the_main_thread(fresh_info):
    made = []
    thread = threading.Thread(target=lambda: made.append(core.init()))
    thread.start()
    thread.join()
    assert made
