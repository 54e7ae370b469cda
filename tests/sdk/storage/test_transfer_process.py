"""Uploads in a process of their own."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from determined.core import CheckpointContext, DummyDistributedContext, _checkpoint_writer
from determined.storage import S3StorageManager, SharedFSStorageManager
from determined.storage.transfer_process import NICE, SeparateProcess, in_separate_process
from tests.sdk.core.fake_transport import FakeTransport
from tests.sdk.storage.conftest import BUCKET, KEY, SECRET

STEPS = {"steps_completed": 10}


class Odd(Exception):
    """Cannot be made again from what it is pickled as."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Storage:
    """Does something odd where an upload is asked for; made anew in the other process."""

    def __init__(self, folder, what):
        self.folder, self.what = pathlib.Path(folder), what

    def store_path_is_direct_access(self):
        return False

    def upload(self, src, dst, paths):
        (self.folder / "pid").write_text(str(os.getpid()))
        getattr(self, self.what)()

    post_store_path = upload

    def dies(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def leaves(self):
        os._exit(3)

    def fails(self):
        raise Odd("this", "that")

    def prints(self):
        print("a word on standard output")
        os.write(1, b"and bytes")

    def hears(self):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        (self.folder / "went on").write_text(f"{os.nice(0)} {os.sched_getscheduler(0)}")

    def sleeps(self):
        while True:
            time.sleep(10)


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "weights").write_bytes(b"12345")
    return directory


def odd(tmp_path, what):
    SeparateProcess(Storage(tmp_path, what)).upload(tmp_path, "id-1")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("dies", r"storing id-1 ended by signal 9 \(out of memory\?\)"),
        ("leaves", "storing id-1 ended with exit code 3"),
        ("fails", "Odd: this and that"),
    ],
)
def test_how_a_process_failed_is_reported(tmp_path, what, text):
    with pytest.raises(RuntimeError, match=text):
        odd(tmp_path, what)


def test_what_it_prints_is_no_answer(tmp_path):
    odd(tmp_path, "prints")
    assert (tmp_path / "pid").read_text() != str(os.getpid())


def test_it_yields_to_training_and_leaves_signals_to_its_starter(tmp_path):
    odd(tmp_path, "hears")
    assert (tmp_path / "went on").read_text() == f"{min(os.nice(0) + NICE, 19)} {os.SCHED_BATCH}"


def test_a_process_that_training_forks_meanwhile_does_not_hold_it_up(tmp_path, monkeypatch):
    begun, forked = subprocess.Popen, []

    def forking(*arguments, **named):
        # As a data loader that starts in the same moment: it has the files of the other process open, too.
        inherited = [named["stdout"].fileno()]
        made = begun(*arguments, **named)
        inherited.append(made.stdin.fileno())
        forked.append(begun([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=inherited))
        return made

    monkeypatch.setattr(subprocess, "Popen", forking)
    try:
        odd(tmp_path, "prints")
    finally:
        forked[0].communicate(b"\n")


def test_failures_keep_their_kind(tmp_path):
    with pytest.raises(FileNotFoundError):
        SeparateProcess(SharedFSStorageManager(tmp_path / "store")).upload(tmp_path / "absent", "id-1", ["x"])


def test_a_directory(tmp_path, model):
    moved = in_separate_process(SharedFSStorageManager(tmp_path / "store"))
    assert isinstance(moved, SeparateProcess)
    moved.upload(model, "id-1")
    assert (tmp_path / "store" / "id-1" / "weights").read_bytes() == b"12345"


def test_a_storage_of_somebodys_own_stays_where_it_is(tmp_path):
    storage = Storage(tmp_path, "prints")
    assert in_separate_process(storage) is storage


STARTER = """
import sys
from determined.storage.transfer_process import SeparateProcess
from tests.sdk.storage.test_transfer_process import Storage
SeparateProcess(Storage(sys.argv[1], "sleeps")).upload(sys.argv[1], "id-1")
"""


def test_it_ends_with_its_starter(tmp_path):
    root = pathlib.Path(__file__).parents[3]
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path)], cwd=root)
    written, deadline = tmp_path / "pid", time.monotonic() + 60
    while not (written.exists() and written.read_text()):
        assert starter.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    starter.kill()
    starter.wait()
    pid = int(written.read_text())
    while _lives(pid):
        assert time.monotonic() < deadline, "the process outlives its starter"
        time.sleep(0.02)


def _lives(pid):
    try:
        os.kill(pid, 0)
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_that_dies_reports_nothing(tmp_path, model, monkeypatch):
    monkeypatch.setattr(
        _checkpoint_writer, "in_separate_process", lambda _: SeparateProcess(Storage(tmp_path, "dies"))
    )
    transport = FakeTransport([10])
    checkpoint = CheckpointContext(
        DummyDistributedContext(), SharedFSStorageManager(tmp_path / "store"), transport
    )
    checkpoint.upload(model, STEPS, background=True)
    with pytest.raises(RuntimeError, match=r"was not stored in the background: .*signal 9"):
        checkpoint.wait_for_upload()
    assert transport.log == []


@pytest.mark.live
@pytest.mark.parametrize("way", ["upload", "store_path"])
def test_to_a_bucket(s3_url, tmp_path, model, way):
    storage, transport = S3StorageManager(BUCKET, KEY, SECRET, s3_url), FakeTransport([10])
    checkpoint = CheckpointContext(DummyDistributedContext(), storage, transport)
    if way == "upload":
        checkpoint.upload(model, STEPS, background=True)
    else:
        with checkpoint.store_path(STEPS, background=True) as (path, _):
            (path / "weights").write_bytes(b"12345")
    checkpoint.wait_for_upload()
    assert "_client" not in storage.__dict__, "another process has the connections"
    (entry,) = transport.log
    storage.download(entry[1].uuid, tmp_path / "back")
    assert (tmp_path / "back" / "weights").read_bytes() == b"12345"
    if way == "store_path":
        assert not path.exists()
