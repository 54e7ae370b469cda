"""Checkpoints: their attributes, their metadata, and the ways their files come."""

from __future__ import annotations

import gzip
import io
import json
import tarfile

import pytest

from determined import errors
from determined.common.api.errors import NotFoundException
from determined.experimental import _download, client
from determined.storage import SharedFSStorageManager
from tests.sdk.fake_gateway import Raw, Status

UUID = "11111111-2222-3333-4444-555555555555"
PATH = f"/api/v1/checkpoints/{UUID}"
RAW = f"/checkpoints/{UUID}"
FILES = {"weights": b"abc", "sub/more": b"defgh"}
RESOURCES = {"weights": "3", "sub/": "0", "sub/more": "5"}


def packed(files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in files.items():
            item = tarfile.TarInfo(name)
            item.size = len(data)
            archive.addfile(item, io.BytesIO(data))
    return gzip.compress(made.getvalue())


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def checkpoint(master, connection, checkpoint_record):
    """`checkpoint(storage=..., **fields)`"""

    def make(storage=None, **how):
        how = {"resources": RESOURCES, "loss": 0.5, **how}
        config = {"searcher": {"metric": "loss"}, "checkpoint_storage": storage}
        master.answer("GET", PATH, {"checkpoint": checkpoint_record(UUID, config=config, **how)})
        return connection.get_checkpoint(UUID)

    return make


@pytest.fixture
def stored(tmp_path):
    """A shared file system that holds the checkpoint; its configuration."""
    source, host = tmp_path / "source", tmp_path / "host"
    for name, data in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    SharedFSStorageManager(host / "inner").upload(source, UUID)
    return {"type": "shared_fs", "host_path": str(host), "storage_path": "inner"}


ELSEWHERE = {"type": "shared_fs", "host_path": "/no/such/place"}
BUCKET = {"type": "s3", "bucket": "b", "access_key": "********", "secret_key": "********"}


def test_attributes(checkpoint):
    stored_checkpoint = checkpoint()
    assert (stored_checkpoint.uuid, stored_checkpoint.task_id, stored_checkpoint.allocation_id) == (
        UUID,
        "1.task",
        "1.task.1",
    )
    assert stored_checkpoint.report_time == "2026-01-02T03:04:05.5Z"
    assert stored_checkpoint.resources == {"weights": 3, "sub/": 0, "sub/more": 5}
    assert stored_checkpoint.metadata == {"steps_completed": 1, "framework": "torch"}
    assert stored_checkpoint.state is client.CheckpointState.COMPLETED
    training = stored_checkpoint.training
    assert (training.experiment_id, training.trial_id, training.hparams) == (7, 1, {"lr": 0.1})
    assert training.experiment_config["searcher"] == {"metric": "loss"}
    assert training.validation_metrics == {"avgMetrics": {"loss": 0.5}, "batchMetrics": []}
    assert repr(stored_checkpoint) == f"Checkpoint(uuid={UUID}, task_id=1.task, trial_id=1)"


def test_one_that_no_trial_made(master, connection):
    bare = {"uuid": UUID, "state": "STATE_COMPLETED", "resources": {}, "metadata": {}}
    master.answer("GET", PATH, {"checkpoint": bare})
    stored_checkpoint = connection.get_checkpoint(UUID)
    assert stored_checkpoint.training is None
    with pytest.raises(errors.NoDirectStorageAccess):
        stored_checkpoint.download(mode=client.DownloadMode.DIRECT)


def test_an_unknown_id(connection):
    with pytest.raises(NotFoundException):
        connection.get_checkpoint("nope")


@pytest.mark.parametrize("mode", [client.DownloadMode.DIRECT, client.DownloadMode.AUTO, "direct"])
def test_download_from_a_shared_file_system(checkpoint, stored, tmp_path, mode):
    target = tmp_path / "target"
    assert checkpoint(stored).download(target, mode) == str(target)
    files = content(target)
    assert json.loads(files.pop("metadata.json")) == {"steps_completed": 1, "framework": "torch"}
    assert files == {name.replace("/", "/"): data for name, data in FILES.items()}


def test_download_to_the_default_place(checkpoint, stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checkpoint(stored).download() == f"checkpoints/{UUID}"
    assert (tmp_path / "checkpoints" / UUID / "weights").read_bytes() == b"abc"


def test_where_a_task_sees_the_shared_file_system(checkpoint, stored, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "MOUNTED_AT", stored["host_path"])
    moved = {**stored, "host_path": "/no/such/place"}
    target = tmp_path / "target"
    checkpoint(moved).download(str(target), client.DownloadMode.DIRECT)
    assert (target / "sub" / "more").read_bytes() == b"defgh"


def test_stored_metadata_stays_as_it_is(checkpoint, stored, tmp_path):
    folder = tmp_path / "host" / "inner" / UUID
    (folder / "metadata.json").write_text('{"stored": 1}')
    checkpoint(stored).download(tmp_path / "target")
    assert json.loads((tmp_path / "target" / "metadata.json").read_text()) == {"stored": 1}


def test_nothing_is_fetched_twice(checkpoint, stored, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "metadata.json").write_text("{}")
    assert checkpoint(stored).download(target) == str(target)
    assert content(target) == {"metadata.json": b"{}"}


def test_a_failed_download_does_not_look_complete(checkpoint, stored, tmp_path, monkeypatch):
    folder = tmp_path / "host" / "inner" / UUID
    (folder / "metadata.json").write_text("{}")
    target = tmp_path / "target"
    target.mkdir()
    (target / "sub").write_text("a file where a directory must go")
    with pytest.raises(FileExistsError):
        checkpoint(stored).download(target, client.DownloadMode.DIRECT)
    assert not (target / "metadata.json").exists()
    (target / "sub").unlink()
    checkpoint(stored).download(target, client.DownloadMode.DIRECT)
    assert set(content(target)) == {*FILES, "metadata.json"}


def test_a_shared_file_system_that_is_not_mounted(checkpoint, tmp_path):
    for mode in (client.DownloadMode.DIRECT, client.DownloadMode.AUTO):
        with pytest.raises(FileNotFoundError, match="mounted"):
            checkpoint(ELSEWHERE).download(tmp_path / "target", mode)
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("state", ["ACTIVE", "ERROR", "DELETED"])
def test_states_without_files(checkpoint, stored, state):
    with pytest.raises(errors.CheckpointStateException, match=state):
        checkpoint(stored, state=state).download()


def test_partially_deleted_ones_have_files(checkpoint, stored, tmp_path):
    checkpoint(stored, state="PARTIALLY_DELETED").download(tmp_path / "target")
    assert (tmp_path / "target" / "weights").exists()


@pytest.mark.parametrize(
    ("mode", "storage"), [("master", ELSEWHERE), ("auto", ELSEWHERE), ("auto", BUCKET), ("auto", None)]
)
def test_download_through_the_master(master, checkpoint, tmp_path, monkeypatch, mode, storage):
    for name in ("AWS_ACCESS_KEY_ID", "MINIO_ACCESS_KEY", "MINIO_ROOT_USER", "AWS_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    master.answer("GET", RAW, Raw(packed({**FILES, "metadata.json": b'{"stored": 1}'})))
    target = tmp_path / "target"
    checkpoint(storage).download(target, client.DownloadMode(mode))
    assert content(target) == {**FILES, "metadata.json": b'{"stored": 1}'}
    (call,) = master.calls_to("GET", RAW)
    assert call.headers["Accept"] == "application/gzip"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


WHOLE = packed(FILES)


@pytest.mark.parametrize(
    "answer",
    [
        Raw(WHOLE[:-4], cut=True),
        Raw(WHOLE[:-4]),
        Raw(WHOLE[: len(WHOLE) // 2]),
        Raw(b"no archive"),
        Raw(b""),
        Raw(packed({"weights": b"abc"})),
        Raw(packed({**FILES, "weights": b"a"})),
        Status(404, {"message": "the files are gone"}),
    ],
    ids=["cut", "short", "half", "text", "nothing", "file missing", "file short", "refused"],
)
def test_an_incomplete_download_leaves_nothing(master, checkpoint, tmp_path, answer):
    master.answer("GET", RAW, answer)
    with pytest.raises(errors.ProxiedDownloadFailed, match=UUID):
        checkpoint(ELSEWHERE).download(tmp_path / "target", client.DownloadMode.MASTER)
    assert not (tmp_path / "target").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_both_ways_failed(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    with pytest.raises(errors.MultipleDownloadsFailed, match="no credentials"):
        checkpoint(BUCKET).download(tmp_path / "target")


def test_an_archive_cannot_write_elsewhere(master, checkpoint, tmp_path):
    master.answer("GET", RAW, Raw(packed({**FILES, "../evil": b"x"})))
    with pytest.raises(errors.ProxiedDownloadFailed):
        checkpoint(ELSEWHERE).download(tmp_path / "a" / "target", client.DownloadMode.MASTER)
    assert list(tmp_path.rglob("evil")) == []


def test_from_a_bucket_with_own_keys(checkpoint, tmp_path, monkeypatch):
    made = []

    class Bucket(SharedFSStorageManager):
        def __init__(self, *_, **__):
            super().__init__(tmp_path / "bucket")

    def build(config):
        made.append(config)
        return Bucket()

    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "weights").write_bytes(b"abc")
    Bucket().upload(tmp_path / "source", UUID)
    monkeypatch.setattr(_download.storage, "build", build)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    checkpoint(BUCKET).download(tmp_path / "target")
    assert made == [{"type": "s3", "bucket": "b"}]
    assert (tmp_path / "target" / "weights").read_bytes() == b"abc"


def test_metadata_changes_here_only_after_the_master_agreed(master, checkpoint):
    path = f"{PATH}/metadata"
    stored_checkpoint = checkpoint()
    with pytest.raises(NotFoundException):
        stored_checkpoint.add_metadata({"a": 1})
    assert "a" not in stored_checkpoint.metadata
    master.answer("POST", path, {})
    stored_checkpoint.add_metadata({"a": 1, "framework": "jax"})
    expected = {"steps_completed": 1, "framework": "jax", "a": 1}
    assert stored_checkpoint.metadata == expected
    assert master.calls[-1].json["checkpoint"]["metadata"] == expected
    stored_checkpoint.remove_metadata(["a", "unknown"])
    assert stored_checkpoint.metadata == {"steps_completed": 1, "framework": "jax"}


def test_write_metadata_file(checkpoint, tmp_path):
    checkpoint().write_metadata_file(str(tmp_path / "new" / "m.json"))
    assert (tmp_path / "new" / "m.json").read_text() == (
        '{\n  "steps_completed": 1,\n  "framework": "torch"\n}'
    )


def test_deletions(master, checkpoint):
    stored_checkpoint = checkpoint()
    master.answer("DELETE", "/api/v1/checkpoints", {})
    assert stored_checkpoint.delete() is None
    assert master.calls[-1].json == {"checkpointUuids": [UUID]}
    master.answer("POST", "/api/v1/checkpoints/rm", {})
    stored_checkpoint.remove_files(["**/*.log"])
    assert master.calls[-1].json == {"checkpointUuids": [UUID], "checkpointGlobs": ["**/*.log"]}
    stored_checkpoint.remove_files([])
    assert master.calls[-1].json == {"checkpointUuids": [UUID], "checkpointGlobs": []}
    with pytest.raises(TypeError, match="list"):
        stored_checkpoint.remove_files("*.log")
