import errno
import json
import logging

import numpy as np
import pytest

from determined import errors
from determined.core import (
    CheckpointContext,
    DownloadMode,
    DummyCheckpointContext,
    DummyDistributedContext,
    TrainContext,
)
from determined.storage import SharedFSStorageManager
from determined.transport.protocol import NeverStored
from tests.sdk.core.copying_storage import Copying
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.core.thread_ranks import run_ranks

STEPS = {"steps_completed": 10}


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def transport():
    return FakeTransport()


@pytest.fixture
def checkpoint(store, transport):
    return CheckpointContext(DummyDistributedContext(), SharedFSStorageManager(store), transport)


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    (directory / "sub").mkdir(parents=True)
    (directory / "weights").write_bytes(b"12345")
    (directory / "sub" / "more").write_bytes(b"1")
    return directory


def test_store_path_reports_after_the_bytes_and_after_earlier_metrics(checkpoint, store, transport, caplog):
    TrainContext(transport, DummyDistributedContext()).report_training_metrics(10, {"x": 1})
    with caplog.at_level(logging.INFO), checkpoint.store_path(STEPS) as (path, storage_id):
        assert path == store / storage_id
        (path / "state").write_text("10,10,1")
        assert transport.log == []
    assert transport.kinds() == ["training", "checkpoint"]
    stored = transport.log[1][1]
    text = (store / storage_id / "metadata.json").read_text()
    assert text == '{\n  "steps_completed": 10\n}'
    assert stored.uuid == storage_id
    assert stored.resources == {"metadata.json": len(text), "state": 7}
    assert stored.metadata == STEPS
    assert f"Reported checkpoint to master {storage_id}" in caplog.text
    assert checkpoint.get_metadata(storage_id) == STEPS
    assert checkpoint.get_metadata("unknown") == {}


def test_metadata_that_is_too_large_touches_nothing(checkpoint, store, transport, model):
    large = STEPS | {"x": "y" * (1 << 20)}
    with pytest.raises(ValueError, match=r"its metadata has .* bytes of JSON: at most 1,048,576"):
        checkpoint.upload(model, large)
    with pytest.raises(ValueError, match="its metadata has"), checkpoint.store_path(large):
        pass
    assert not store.exists() or not any(store.iterdir())
    assert transport.log == []


WITHOUT_STEPS = [
    None,
    {},
    {"steps": 1},
    {"steps_completed": "ten"},
    {"steps_completed": True},
    {"steps_completed": -1},
    {"steps_completed": 2**53},
    {"steps_completed": 2.0**63},
    {"steps_completed": float("nan")},
]


@pytest.mark.parametrize("metadata", WITHOUT_STEPS)
def test_metadata_without_steps_touches_nothing(checkpoint, store, transport, model, metadata):
    entered = []
    with pytest.raises(ValueError, match="steps_completed"), checkpoint.store_path(metadata):
        entered.append("a body that gives no steps either")
    assert bool(entered) == (metadata is not None and "steps_completed" not in metadata)
    with pytest.raises(ValueError, match="steps_completed"):
        checkpoint.upload(model, metadata)
    assert not store.exists() or not any(store.iterdir())
    assert not (model / "metadata.json").exists()
    assert transport.log == []


@pytest.mark.parametrize("steps", [3, 3.0, np.int64(3), np.float32(3)])
def test_steps_may_come_inside_the_body(checkpoint, transport, steps):
    metadata = {"model": "linear"}
    with checkpoint.store_path(metadata) as (path, storage_id):
        (path / "state").write_text("x")
        metadata["steps_completed"] = steps
    assert checkpoint.get_metadata(storage_id) == {"model": "linear", "steps_completed": 3}
    assert type(transport.checkpoint_metadata(storage_id)["steps_completed"]) is int


def test_metadata_must_be_a_plain_dict(checkpoint, store):
    with pytest.raises(TypeError, match="must be a dict"), checkpoint.store_path(["steps_completed"]):
        pass
    with pytest.raises(TypeError, match="Unserializable"), checkpoint.store_path({**STEPS, "x": object()}):
        pass
    assert not store.exists()


def test_metadata_changed_inside_the_with_counts(checkpoint, transport):
    metadata = dict(STEPS)
    with checkpoint.store_path(metadata) as (_, storage_id):
        metadata["format"] = "own"
    assert checkpoint.get_metadata(storage_id) == {"steps_completed": 10, "format": "own"}


def store_half(checkpoint, failure):
    with checkpoint.store_path(STEPS) as (path, _):
        (path / "half").write_text("...")
        raise failure


@pytest.mark.parametrize("manager", [SharedFSStorageManager, Copying])
@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_an_exception_inside_leaves_nothing_behind(store, transport, manager, failure):
    checkpoint = CheckpointContext(DummyDistributedContext(), manager(store), transport)
    with pytest.raises(failure):
        store_half(checkpoint, failure)
    assert transport.log == []
    assert [p for p in store.parent.rglob("*") if p.is_file() or p.parent == store] == []


def test_a_failing_store_leaves_nothing_behind(store, transport, model):
    def went_away():
        raise OSError("the store went away")

    storage = Copying(store, went_away)
    checkpoint = CheckpointContext(DummyDistributedContext(), storage, transport)
    with pytest.raises(OSError, match="went away"):
        checkpoint.upload(model, STEPS)
    with pytest.raises(OSError, match="went away"), checkpoint.store_path(STEPS) as (path, _):
        (path / "state").write_text("x")
    assert list(store.iterdir()) == []
    assert transport.log == []


REFUSED_FOR_GOOD = [NeverStored("larger than a message may be"), ValueError("it cannot be stored")]


def upload_directory(checkpoint, model):
    checkpoint.upload(model, STEPS)


def write_into_store(checkpoint, model):
    with checkpoint.store_path(STEPS) as (path, _):
        (path / "state").write_text("x")


PERHAPS_REGISTERED = [RuntimeError("the thread has ended"), OSError("no answer"), KeyboardInterrupt()]


@pytest.mark.parametrize("manager", [SharedFSStorageManager, Copying])
@pytest.mark.parametrize("failure", [*REFUSED_FOR_GOOD, *PERHAPS_REGISTERED], ids=repr)
@pytest.mark.parametrize("uploads", [False, True])
def test_the_files_of_a_checkpoint_are_removed_if_it_will_never_be_registered(
    store, transport, model, manager, failure, uploads, monkeypatch
):
    def refuse(stored):
        raise failure

    monkeypatch.setattr(transport, "checkpoint", refuse)
    checkpoint = CheckpointContext(DummyDistributedContext(), manager(store), transport)
    store_once = upload_directory if uploads else write_into_store
    with pytest.raises(type(failure)):
        store_once(checkpoint, model)
    assert bool(list(store.iterdir())) == (failure in PERHAPS_REGISTERED)
    assert (model / "metadata.json").exists() == uploads, "files of the script are its own"


def test_upload_and_download(checkpoint, transport, model, tmp_path):
    storage_id = checkpoint.upload(str(model), {**STEPS, "score": float("nan")})
    assert json.loads((model / "metadata.json").read_text()) == {"steps_completed": 10, "score": "NaN"}
    assert transport.log[0][1].resources == {
        "metadata.json": (model / "metadata.json").stat().st_size,
        "sub/": 0,
        "sub/more": 1,
        "weights": 5,
    }
    checkpoint.download(storage_id, tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "more").read_bytes() == b"1"
    checkpoint.download(
        storage_id, tmp_path / "one", "NO_SHARED_DOWNLOAD", selector=lambda n: n == "sub/more"
    )
    assert sorted(p.name for p in (tmp_path / "one").rglob("*")) == ["more", "sub"]
    with checkpoint.restore_path(storage_id, DownloadMode.NoSharedDownload) as path:
        assert (path / "weights").read_bytes() == b"12345"
    checkpoint.delete(storage_id)
    checkpoint.delete(storage_id)
    with pytest.raises(errors.CheckpointNotFound, match=storage_id):
        checkpoint.download(storage_id, tmp_path / "gone")
    with pytest.raises(errors.CheckpointNotFound), checkpoint.restore_path(storage_id):
        pass


def test_upload_of_a_selection(checkpoint, store, transport, model):
    names = []
    storage_id = checkpoint.upload(
        model, STEPS, selector=lambda name: names.append(name) or name == "sub/more"
    )
    assert names == ["metadata.json", "sub/", "sub/more", "weights"]
    assert transport.log[0][1].resources == {"sub/": 0, "sub/more": 1}
    assert sorted(p.name for p in (store / storage_id).rglob("*")) == ["more", "sub"]


def test_upload_of_nothing_there(checkpoint, tmp_path):
    with pytest.raises(RuntimeError, match="directory"):
        checkpoint.upload(None, STEPS)
    with pytest.raises(FileNotFoundError, match="missing"):
        checkpoint.upload(tmp_path / "missing", STEPS)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file"):
        checkpoint.upload(tmp_path / "file", STEPS)


def test_shard_of_a_job_of_one_is_plain(checkpoint, transport, model):
    storage_id = checkpoint.upload(model, STEPS, shard=True)
    with checkpoint.store_path(STEPS, shard=True) as (path, _):
        (path / "x").write_text("x")
    assert [entry[1].uuid == storage_id for entry in transport.log] == [True, False]


def test_other_ranks_may_not_store(store, model):
    def rank(dist):
        checkpoint = CheckpointContext(dist, SharedFSStorageManager(store), FakeTransport())
        if dist.rank == 0:
            return
        with pytest.raises(RuntimeError, match=r"upload.*non-chief"):
            checkpoint.upload(model, STEPS)
        with pytest.raises(RuntimeError, match=r".store_path.*non-chief"), checkpoint.store_path(STEPS):
            pass

    assert run_ranks(2, rank) == [None, None]
    assert not store.exists()


def stored(store, model):
    return DummyCheckpointContext(DummyDistributedContext(), SharedFSStorageManager(store)).upload(model)


def test_the_selector_of_a_shard_is_not_asked_about_metadata(checkpoint, model, store, transport):
    """As on several ranks, where all shards have one metadata.json; here it is the only rank's."""
    names = []
    storage_id = checkpoint.upload(
        model, STEPS, shard=True, selector=lambda name: names.append(name) or name == "sub/more"
    )
    assert "metadata.json" not in names
    assert json.loads((store / storage_id / "metadata.json").read_text()) == STEPS
    assert sorted(transport.log[0][1].resources) == ["metadata.json", "sub/", "sub/more"]


def _restore(store, storage_id, selectors, tmp_path, manager=Copying):
    def rank(dist):
        checkpoint = DummyCheckpointContext(dist, manager(store))
        target = tmp_path / "shared"
        checkpoint.download(storage_id, target, selector=selectors[dist.rank])
        with checkpoint.restore_path(storage_id) as path:
            assert path.is_dir()
        return sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file())

    return run_ranks(2, rank)


def test_ranks_of_a_node_share_a_download_of_what_any_wants(store, model, tmp_path):
    storage_id = stored(store, model)
    selectors = [lambda name: name == "weights", lambda name: name == "sub/more"]
    assert _restore(store, storage_id, selectors, tmp_path) == [["sub/more", "weights"]] * 2


def test_a_rank_without_selector_wants_everything(store, model, tmp_path):
    storage_id = stored(store, model)
    everything = ["metadata.json", "sub/more", "weights"]
    assert _restore(store, storage_id, [lambda name: False, None], tmp_path) == [everything] * 2


@pytest.mark.parametrize("selectors", [[None, None], [None, lambda name: True]])
def test_all_ranks_raise_what_the_local_chief_meets(store, tmp_path, selectors):
    first, second = _restore(store, "unknown", selectors, tmp_path)
    assert isinstance(first, errors.CheckpointNotFound)
    assert isinstance(second, errors.CheckpointNotFound)


def test_all_ranks_raise_when_one_selector_does(store, model, tmp_path):
    storage_id = stored(store, model)
    outcomes = _restore(store, storage_id, [None, lambda name: 1 / 0], tmp_path)
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 2


def test_the_warning_about_selectors_needs_a_selector(checkpoint, caplog):
    with checkpoint.store_path(STEPS) as (path, storage_id):
        (path / "a").write_text("a")
    with checkpoint.restore_path(storage_id):
        assert "partial" not in caplog.text
    with checkpoint.restore_path(storage_id, selector=lambda name: name == "nothing") as path:
        assert (path / "a").exists()
    assert "Ignoring partial checkpoint download from shared_fs" in caplog.text


def test_off_cluster_checkpoints_are_real(store, caplog):
    checkpoint = DummyCheckpointContext(DummyDistributedContext(), SharedFSStorageManager(store))
    with caplog.at_level(logging.INFO), checkpoint.store_path() as (path, storage_id):
        (path / "state").write_text("x")
    assert f"saved checkpoint {storage_id}" in caplog.text
    assert checkpoint.get_metadata(storage_id) == {}
    with checkpoint.store_path({"mine": 1}) as (_, second):
        pass
    assert checkpoint.get_metadata(second) == {"mine": 1}
    with pytest.raises(errors.CheckpointNotFound):
        checkpoint.get_metadata("unknown")


USED_UP = "user 'ann' stores 2 TB of the 2 TB that its quota allows"


def test_a_used_up_quota_refuses_before_the_first_byte(checkpoint, store, transport, model):
    transport.no_storage = USED_UP
    entered = []
    with pytest.raises(OSError, match=f"the checkpoint is not stored: {USED_UP}") as refusal:
        checkpoint.upload(model, STEPS)
    assert refusal.value.errno == errno.EDQUOT
    with pytest.raises(OSError, match="is not stored"), checkpoint.store_path(STEPS):
        entered.append(True)
    assert (entered, transport.log, list(store.glob("*"))) == ([], [], [])
    size = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    assert transport.calls == [f"storage_refusal {size}", "storage_refusal 0"]
