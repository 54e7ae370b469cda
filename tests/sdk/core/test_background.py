"""Checkpoints that are stored while training goes on."""

import logging
import threading

import pytest

from determined import core
from determined.core import (
    CheckpointContext,
    DummyDistributedContext,
    SearcherContext,
    _checkpoint_background,
)
from determined.core._checkpoint_background import BackgroundUpload
from determined.storage import SharedFSStorageManager
from tests.sdk.core.copying_storage import Copying
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.core.socket_ranks import PATIENCE_S, run_ranks

STEPS = {"steps_completed": 10}


class Gate:
    """Holds uploads up until opened; `when_waited_for` opens it as soon as somebody waits for them."""

    def __init__(self):
        self.opened = threading.Event()

    def __call__(self):
        assert self.opened.wait(PATIENCE_S)

    open = property(lambda self: self.opened.set)

    def when_waited_for(self, monkeypatch, caplog):
        monkeypatch.setattr(_checkpoint_background, "_TOLD_EVERY_S", 0.01)
        caplog.set_level(logging.INFO, "determined.core")

        def open_then(record):
            if "waiting until" in record.getMessage():
                self.open()
            return True

        caplog.handler.addFilter(open_then)


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.open()


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "weights").write_bytes(b"12345")
    return directory


@pytest.fixture
def transport():
    return FakeTransport([10, 20], preempt_after=0)


@pytest.fixture
def uploads():
    made = BackgroundUpload()
    yield made
    made.settle()


@pytest.fixture
def checkpoint(store, transport, gate, uploads):
    return CheckpointContext(DummyDistributedContext(), Copying(store, gate), transport, uploads)


def went_away():
    raise OSError("the store went away")


def nothing_is_left(store):
    return [*store.glob("*"), *store.parent.glob("store-scratch-*")] == []


def test_training_goes_on_and_the_whole_checkpoint_is_reported(checkpoint, transport, gate, model, store):
    storage_id = checkpoint.upload(model, STEPS, background=True)
    assert transport.log == []
    gate.open()
    checkpoint.wait_for_upload()
    (entry,) = transport.log
    assert entry[1].uuid == storage_id
    assert entry[1].resources.keys() == {"weights", "metadata.json"}
    assert (store / storage_id / "weights").read_bytes() == b"12345"


@pytest.mark.parametrize("manager", [SharedFSStorageManager, Copying])
def test_store_path(store, transport, manager):
    checkpoint = CheckpointContext(DummyDistributedContext(), manager(store), transport)
    with checkpoint.store_path(STEPS, background=True) as (path, first):
        (path / "state").write_text("1")
    with checkpoint.store_path(STEPS, background=True) as (path, second):
        assert [entry[1].uuid for entry in transport.log] == [first]
        (path / "state").write_text("2")
    checkpoint.wait_for_upload()
    assert [entry[1].uuid for entry in transport.log] == [first, second]
    assert (store / second / "state").read_text() == "2"
    assert sorted(p.name for p in store.parent.iterdir()) == ["store"]


def test_an_exception_inside_leaves_nothing(checkpoint, transport, store):
    def body():
        with checkpoint.store_path(STEPS, background=True) as (path, _):
            (path / "state").write_text("1")
            raise KeyError("state")

    with pytest.raises(KeyError):
        body()
    assert transport.log == []
    assert nothing_is_left(store)


ACKNOWLEDGED = ["checkpoint", "acknowledged"]
WAITING = {
    "preemption": (lambda parts: parts["preempt"].should_preempt(), ACKNOWLEDGED),
    "no operation left": (lambda parts: parts["searcher"].acknowledge_out_of_ops(), ACKNOWLEDGED),
    "completion": (
        lambda parts: next(parts["searcher"].operations()).report_completed(1.0),
        ["checkpoint", "completed"],
    ),
    "deletion": (lambda parts: parts["checkpoint"].delete("another"), ["checkpoint"]),
    "next upload": (lambda parts: parts["checkpoint"].upload(parts["model"], STEPS), ["checkpoint"] * 2),
}


@pytest.mark.parametrize("what", WAITING)
def test_what_waits_for_the_upload(what, checkpoint, transport, gate, uploads, model, monkeypatch, caplog):
    gate.when_waited_for(monkeypatch, caplog)
    dist = DummyDistributedContext()
    preempt = core.PreemptContext(transport, dist, uploads=uploads).start()
    searcher = SearcherContext(transport, dist, uploads=uploads)
    checkpoint.upload(model, STEPS, background=True)
    act, expected = WAITING[what]
    act({"preempt": preempt, "searcher": searcher, "checkpoint": checkpoint, "model": model})
    assert transport.kinds() == expected
    assert "waiting until checkpoint" in caplog.text


def test_leaving_the_context_waits(on_cluster, transport, gate, model, monkeypatch, caplog):
    gate.when_waited_for(monkeypatch, caplog)
    on_cluster(transport)
    monkeypatch.setattr(
        "determined.core._context.trial_storage", lambda *_: Copying(model.parent / "s", gate)
    )
    with core.init() as context:
        context.checkpoint.upload(model, STEPS, background=True)
    assert transport.kinds() == ["checkpoint"]
    assert transport.calls[-1] == "close"


def test_a_failure_is_raised_once_by_the_next_store(store, transport, model):
    broken = [went_away, lambda: None]
    storage = Copying(store, lambda: broken.pop(0)())
    checkpoint = CheckpointContext(DummyDistributedContext(), storage, transport)
    storage_id = checkpoint.upload(model, STEPS, background=True)
    with pytest.raises(RuntimeError, match=f"{storage_id} was not stored.*OSError: the store went away"):
        checkpoint.upload(model, STEPS)
    assert transport.log == []
    assert nothing_is_left(store)
    checkpoint.upload(model, STEPS)
    assert transport.kinds() == ["checkpoint"]


def run_to_the_end(model, failure=None):
    with core.init() as context:
        context.checkpoint.upload(model, STEPS, background=True)
        if failure:
            raise failure


def test_a_failure_is_raised_at_the_end(on_cluster, transport, model, monkeypatch, caplog):
    on_cluster(transport)
    broken = Copying(model.parent / "store", went_away)
    monkeypatch.setattr(core._context, "trial_storage", lambda *_: broken)
    with pytest.raises(RuntimeError, match="was not stored in the background"):
        run_to_the_end(model)
    assert transport.calls[-1] == "close"
    with pytest.raises(ZeroDivisionError):
        run_to_the_end(model, ZeroDivisionError())
    assert "was not stored in the background" in caplog.text
    assert transport.log == []


def test_a_directory_that_changes_is_no_checkpoint(checkpoint, transport, gate, store, model):
    checkpoint.upload(model, STEPS, background=True)
    (model / "weights").write_bytes(b"1234567")
    gate.open()
    with pytest.raises(RuntimeError, match="files changed while they were stored: weights"):
        checkpoint.wait_for_upload()
    assert transport.log == []
    assert nothing_is_left(store)


@pytest.mark.parametrize(("nodes", "per_node"), [(1, 3), (3, 1)])
def test_shards_are_stored_beside_the_collectives_of_training(store, transport, gate, nodes, per_node):
    def body(dist):
        checkpoint = CheckpointContext(dist, Copying(store, gate), transport)
        for step in range(2):
            with checkpoint.store_path(STEPS, shard=True, background=True) as (path, storage_id):
                (path / f"part{dist.rank}").write_text(f"{step}")
            sums = [sum(dist.allgather(n)) for n in range(50)]
            gate.open()
        checkpoint.wait_for_upload()
        return storage_id, sums, path.exists()

    outcomes = run_ranks(body, nodes, per_node, pull_port=0)
    assert outcomes == [(outcomes[0][0], [3 * n for n in range(50)], False)] * 3
    assert transport.kinds() == ["checkpoint"] * 2
    assert transport.log[1][1].resources.keys() == {"metadata.json", "part0", "part1", "part2"}


def test_a_shard_that_fails_is_raised_by_all_ranks(store, transport, tmp_path):
    def body(dist):
        directory = tmp_path / f"{dist.rank}"
        directory.mkdir()
        (directory / f"part{dist.rank}").write_text("x")
        storage = Copying(store, went_away if dist.rank == 1 else lambda: None)
        checkpoint = CheckpointContext(dist, storage, transport)
        checkpoint.upload(directory, STEPS, shard=True, background=True)
        checkpoint.upload(directory, STEPS, shard=True)

    for outcome in run_ranks(body):
        assert isinstance(outcome, RuntimeError)
        assert "was not stored in the background" in str(outcome)
        assert "the store went away" in str(outcome)
    assert transport.log == []
    assert nothing_is_left(store)
