import logging

import pytest

from determined.core import (
    DummyDistributedContext,
    DummyTrainContext,
    EarlyExitReason,
    TrainContext,
    _metric_names,
)
from determined.core._tensorboard import TensorboardUpload
from determined.storage import SharedFSStorageManager
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.core.thread_ranks import run_ranks


@pytest.fixture
def transport():
    return FakeTransport()


@pytest.fixture
def train(transport):
    return TrainContext(transport, DummyDistributedContext(), trial_id=7, exp_id=3, run_id=2)


def test_reports_carry_group_steps_and_values(train, transport):
    train.report_training_metrics(10, {"loss": 0.5}, batch_metrics=[{"loss": float("nan")}])
    train.report_validation_metrics(steps_completed=10, metrics={"accuracy": 1})
    train._report_trial_metrics("odd group/50 %", 0, {"x": "text"})
    first, second, third = transport.pending
    assert (first.group, first.steps_completed, first.metrics) == ("training", 10, {"loss": 0.5})
    assert first.batch_metrics == [{"loss": "NaN"}]
    assert (second.group, second.metrics, second.batch_metrics) == ("validation", {"accuracy": 1}, None)
    assert (third.group, third.steps_completed) == ("odd group/50 %", 0)
    assert train._get_last_validation() == 10
    assert (train._trial_id, train._exp_id, train._run_id) == (7, 3, 2)


def test_a_validation_metric_none_sends_nothing(train, transport):
    with pytest.raises(RuntimeError, match="Validation metric 'b' returned an invalid scalar value: None"):
        train.report_validation_metrics(1, {"a": 1.0, "b": None})
    assert transport.pending == []


def test_bytes_in_a_validation_are_left_out_with_a_warning(train, transport, caplog):
    train.report_validation_metrics(1, {"a": 1.0, "image": b"..", "other": bytearray(b"..")})
    assert transport.pending[0].metrics == {"a": 1.0}
    assert "Removed non serializable metrics: image, other" in caplog.text


@pytest.mark.parametrize("reported", [{"accuracy": 1}, {}, {"Loss": 1, "accuracy": 1}])
def test_a_validation_without_the_metric_of_the_search_is_warned_of_once(transport, caplog, reported):
    train = TrainContext(transport, DummyDistributedContext(), searcher_metric="loss")
    train.report_training_metrics(1, {"accuracy": 1})
    assert caplog.text == ""
    for steps in (1, 2):
        train.report_validation_metrics(steps, reported)
    names = ", ".join(repr(name) for name in sorted(reported)) or "none"
    assert caplog.text.count("names 'loss' as searcher.metric, but") == 1
    assert f"they have {names}." in caplog.text
    assert len(transport.pending) == 3


def test_a_validation_with_the_metric_of_the_search_warns_of_nothing(transport, caplog):
    train = TrainContext(transport, DummyDistributedContext(), searcher_metric="loss")
    train.report_training_metrics(1, {"accuracy": 1})
    train.report_validation_metrics(1, {"loss": 1, "accuracy": 1})
    train.report_validation_metrics(2, {"accuracy": 1})
    assert caplog.text == ""


def test_names_above_the_limit_are_warned_of_once_per_group(train, caplog, monkeypatch):
    monkeypatch.setattr(_metric_names, "MAX_NAMES_PER_GROUP", 3)
    train.report_training_metrics(1, {"a": 1, "b": 1})
    train.report_training_metrics(2, {"b": 1, "c": 1})
    assert caplog.text == ""
    for steps in (3, 4):
        train.report_training_metrics(steps, {"d": 1, f"e{steps}": 1})
    train.report_validation_metrics(4, {"f": 1})
    assert caplog.text.count("training metrics of this trial have more than 3 names") == 1
    assert "validation" not in caplog.text


def test_groups_above_the_limit_are_warned_of_once(train, caplog, monkeypatch):
    monkeypatch.setattr(_metric_names, "MAX_GROUPS_PER_TRIAL", 3)
    for steps in range(3):
        train._report_trial_metrics(f"group {steps}", steps, {"a": 1})
    train.report_validation_metrics(4, {"f": 1})
    assert caplog.text == ""
    for steps in (3, 4, 5):
        train._report_trial_metrics(f"group {steps}", steps, {"a": 1})
    assert caplog.text.count("more than 3 groups: metrics of further ones, such as 'group 3'") == 1


@pytest.mark.parametrize("steps", ["ten", None, 1.5, [1]])
def test_steps_must_be_an_integer(train, transport, steps):
    with pytest.raises(TypeError, match="steps_completed must be an integer"):
        train.report_training_metrics(steps, {"x": 1})
    assert transport.pending == []


def test_integral_steps_of_other_types_are_taken(train, transport):
    train.report_training_metrics(10.0, {"x": 1})
    assert transport.pending[0].steps_completed == 10
    assert type(transport.pending[0].steps_completed) is int


def test_a_refused_report_is_raised_by_the_next_call(train, transport):
    train.report_training_metrics(1, {"x": 1})
    transport.refusal = RuntimeError("overwriting existing metric keys: x")
    with pytest.raises(RuntimeError, match="overwriting"):
        train.report_training_metrics(2, {"x": 1})
    train.report_training_metrics(3, {"x": 1})


def test_only_the_chief_reports():
    def rank(dist):
        transport = FakeTransport()
        train = TrainContext(transport, dist)
        for report in (train.report_training_metrics, train.report_validation_metrics):
            if dist.rank == 0:
                report(1, {"x": 1})
            else:
                with pytest.raises(RuntimeError, match="non-chief rank 1"):
                    report(1, {"x": 1})
        train.report_early_exit(EarlyExitReason.INVALID_HP)
        return len(transport.pending), transport.log[-1]

    exit_fact = ("exit_early", "EXITED_REASON_INVALID_HP")
    reports, facts = zip(*run_ranks(2, rank), strict=True)
    assert facts == (exit_fact, exit_fact)
    assert reports == (0, 0), "the chief's reports are stored before its exit, rank 1 has none"


def test_a_second_early_exit_only_warns(train, transport, caplog):
    train.report_early_exit(EarlyExitReason.USER_REQUESTED_STOP)
    train.report_early_exit("EXITED_REASON_INVALID_HP")
    assert transport.log == [("exit_early", "EXITED_REASON_USER_REQUESTED_STOP")]
    assert "EXITED_REASON_INVALID_HP is ignored" in caplog.text


@pytest.mark.parametrize("steps", [-1, 2**53, 2**63, 2.0**60])
def test_steps_that_no_database_keeps_are_refused_where_they_are_reported(train, transport, steps):
    with pytest.raises(ValueError, match=r"steps_completed must be an integer from 0 to 2\*\*53 - 1, not"):
        train.report_training_metrics(steps, {"loss": 1.0})
    assert transport.log == []


def test_status_and_best_validation(train, transport):
    transport.best = 0.25
    train.set_status("restoring")
    train.set_status("file \udcff")
    assert transport.log == [("status", "restoring"), ("status", "file ?")]
    assert train.get_experiment_best_validation() == 0.25


def test_tensorboard_files_are_sent_once_per_change(transport, tmp_path):
    base, store = tmp_path / "events", tmp_path / "store"
    (base / "sub").mkdir(parents=True)
    (base / "sub" / "a.tfevents").write_text("1")
    (base / "b.skip").write_text("1")
    upload = TensorboardUpload(SharedFSStorageManager(store), base, "c/tensorboard/experiment/1/trial/2", 0)
    train = TrainContext(
        transport, DummyDistributedContext(), tensorboard_path=base, tensorboard_upload=upload
    )
    paths = []

    def selector(path):
        paths.append(path)
        return path.suffix == ".tfevents"

    train.report_training_metrics(1, {"x": 1})
    train.upload_tensorboard_files(selector, lambda path, rank: path.with_name(f"{rank}#{path.name}"))
    stored = store / "c/tensorboard/experiment/1/trial/2/sub/0#a.tfevents"
    assert stored.read_text() == "1"
    assert all(path.is_absolute() for path in paths)
    assert transport.kinds() == [], "files do not wait for reports, which an outage may hold up"
    stored.unlink()
    train.upload_tensorboard_files(selector)
    assert not list(store.rglob("*.tfevents"))
    (base / "sub" / "a.tfevents").write_text("12")
    train.upload_tensorboard_files(selector)
    assert (store / "c/tensorboard/experiment/1/trial/2/sub/a.tfevents").read_text() == "12"
    assert train.get_tensorboard_path() == base


def test_uploading_tensorboard_files_needs_manual_mode(train):
    with pytest.raises(RuntimeError, match="MANUAL"):
        train.upload_tensorboard_files()


@pytest.mark.parametrize(
    ("kind", "steps", "metrics", "error"),
    [
        ("training", 1, {"anything": object()}, TypeError),
        ("training", 1, {"some": {1, 2}}, TypeError),
        ("training", "two", {"loss": 1}, TypeError),
        ("validation", 1, {"accuracy": object()}, TypeError),
    ],
)
def test_what_is_refused_is_refused_on_and_off_cluster(train, kind, steps, metrics, error):
    for context in (train, DummyTrainContext()):
        with pytest.raises(error):
            getattr(context, f"report_{kind}_metrics")(steps, metrics)


def test_off_cluster_reports_go_to_the_log(caplog, tmp_path):
    train = DummyTrainContext(tmp_path)
    with caplog.at_level(logging.INFO):
        train.report_training_metrics(1, {"loss": None, "raw": b"bytes"})
        train.report_validation_metrics(2.0, {"accuracy": 0.5})
        train.set_status("busy")
        train.report_early_exit(EarlyExitReason.INVALID_HP)
        train.upload_tensorboard_files()
    for part in ("training", "validation", "accuracy", "busy", "EXITED_REASON_INVALID_HP", str(tmp_path)):
        assert part in caplog.text
    assert train.get_experiment_best_validation() is None
    assert train.get_tensorboard_path() == tmp_path
    assert DummyTrainContext().get_tensorboard_path().name.startswith("tensorboard-")
