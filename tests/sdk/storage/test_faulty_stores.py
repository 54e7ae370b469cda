"""Stores that hang, are busy, vanish or withdraw the keys: an error says so in time, and nothing is lost."""

import itertools
import threading
from datetime import timedelta

import pytest

from determined.core import CheckpointContext, DummyDistributedContext
from determined.storage import (
    AzureStorageManager,
    GCSStorageManager,
    S3StorageManager,
    download,
    object_store,
    s3_bucket,
    s3_streams,
    transfer,
)
from tests.fixtures.azure_server import ACCOUNT_KEY, CONTAINER
from tests.fixtures.gcs_server import GCS_BUCKET
from tests.fixtures.s3_stand_in import STAND_IN_BUCKET, s3_stand_in
from tests.fixtures.tiers import others_in_full
from tests.sdk.core.fake_transport import FakeTransport

MIB = 1 << 20


@pytest.fixture(scope="module")
def s3():
    with s3_stand_in() as server:
        yield server


@pytest.fixture
def silence_s():
    """So long a store may say nothing: longer than a busy machine needs, where the test is not about that."""
    return 60.0


@pytest.fixture(params=["s3", "gcs", "azure"])
def faulty(request, monkeypatch, silence_s):
    """A stand-in, and a storage in it that is not patient with errors."""
    monkeypatch.setattr(transfer, "PART_SIZE_BYTES", 5 * MIB)
    monkeypatch.setattr(s3_bucket, "SILENCE_S", silence_s)
    monkeypatch.setattr(s3_streams, "SILENCE_S", silence_s)
    monkeypatch.setattr(s3_bucket._Retry, "get_backoff_time", lambda self: 0.0)
    monkeypatch.setattr(download, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(download, "_PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(
        object_store, "_CLIENT", {"timeout": timedelta(seconds=silence_s), "allow_http": True}
    )
    retries = {"max_retries": 2, "retry_timeout": timedelta(seconds=0.5)}
    monkeypatch.setattr(object_store, "_RETRIES", retries)
    server = request.getfixturevalue(request.param)
    server.objects.clear()
    server.parts.clear()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    storages = {
        "s3": lambda: S3StorageManager(STAND_IN_BUCKET, "key", "secret", server.url),
        "gcs": lambda: GCSStorageManager(GCS_BUCKET),
        "azure": lambda: AzureStorageManager(CONTAINER, account_url=server.url, credential=ACCOUNT_KEY),
    }
    yield server, storages[request.param]()
    server.fault = None


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "source"
    root.mkdir()
    for name in "abcdef":
        (root / name).write_text(name)
    (root / "large").write_bytes(bytes(range(256)) * (11 << 12))
    return root


def refusing(status, code, *, after=0, methods=("PUT", "GET", "POST", "DELETE")):
    """Answers so each request of these methods but the first ones."""
    count = itertools.count()

    def fault(handler):
        if handler.command not in methods or next(count) < after:
            return False
        handler.say(*handler.error(status, code))
        return True

    return fault


def hanging(server, method="", name=""):
    """Never answers; only when the test is over."""
    over = threading.Event()

    def fault(handler):
        if handler.command != method or name not in handler.path:
            return False
        while not (over.is_set() or server.over.is_set()):
            over.wait(0.05)
        handler.close_connection = True
        return True

    return fault, over


def upload(storage, source):
    """What a script does. Returns what was told to the cluster."""
    transport = FakeTransport([10])
    checkpoint = CheckpointContext(DummyDistributedContext(), storage, transport)
    try:
        checkpoint.upload(source, {"steps_completed": 1})
    finally:
        log = transport.log
    return log


@pytest.mark.parametrize("silence_s", [1.0])
@pytest.mark.parametrize("name", ["", "large"])
def test_a_store_that_hangs_is_given_up(faulty, source, name):
    """Where it was not, its stand-in would hang for ever, and so would this."""
    server, storage = faulty
    server.fault, over = hanging(server, "PUT", name)
    try:
        with pytest.raises(OSError, match="refuses: "):
            upload(storage, source)
    finally:
        over.set()
    assert server.objects == {}


@pytest.mark.parametrize("silence_s", [3.0])
def test_a_download_from_a_store_that_hangs_is_given_up(faulty, source, tmp_path):
    server, storage = faulty
    storage.upload(source, "one")
    server.fault, over = hanging(server, "GET", "large")
    try:
        with pytest.raises(OSError, match=r"refuses: .*large"):
            storage.download("one", tmp_path / "back")
    finally:
        over.set()
    assert not (tmp_path / "back" / "large").exists()
    server.fault = None
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "large").read_bytes() == (source / "large").read_bytes()


def test_a_store_that_stays_busy_says_so(faulty, source, tmp_path):
    server, storage = faulty
    storage.upload(source, "one")
    server.fault = refusing(503, "SlowDown")
    with pytest.raises(OSError, match=r"refuses: .*(503|SlowDown)"):
        upload(storage, source)
    with pytest.raises(OSError, match=r"refuses: .*(503|SlowDown)"):
        storage.download("one", tmp_path / "back")
    with pytest.raises(OSError, match=r"refuses: .*(503|SlowDown)"):
        storage.delete("one", ["**/*"])
    server.fault = None
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "large").read_bytes() == (source / "large").read_bytes()


@pytest.mark.parametrize(
    ("status", "code"),
    others_in_full(
        [(404, "NoSuchBucket"), (403, "ExpiredToken"), (400, "ExpiredToken"), (507, "Full")],
        [(404, "NoSuchBucket"), (403, "ExpiredToken"), (507, "Full")],
    ),
)
def test_what_ends_in_mid_upload_is_reported_nowhere(faulty, source, status, code):
    server, storage = faulty
    transport = FakeTransport([10])
    checkpoint = CheckpointContext(DummyDistributedContext(), storage, transport)
    server.fault = refusing(status, code, after=3)
    with pytest.raises(OSError, match=rf"refuses: .*{code}"):
        checkpoint.upload(source, {"steps_completed": 1})
    assert transport.log == []
    server.fault = None
    checkpoint.upload(source, {"steps_completed": 2})
    assert len(transport.log) == 1


def test_slow_deletions_end(faulty, source):
    server, storage = faulty
    storage.upload(source, "one")
    slow = threading.Event()

    def fault(handler):
        if handler.command in ("DELETE", "POST"):
            slow.wait(0.3)
        return False

    server.fault = fault
    assert storage.delete("one", ["**/*"]) == {}
    assert server.objects == {}


def test_a_deletion_that_was_cut_off_is_finished_by_the_next(faulty, source):
    server, storage = faulty
    storage.upload(source, "one")
    server.fault = refusing(403, "AccessDenied", methods=("POST", "DELETE"))
    with pytest.raises(OSError, match=r"AccessDenied|403"):
        storage.delete("one", ["**/*"])
    server.fault = None
    assert storage.delete("one", ["**/*"]) == {}
    assert server.objects == {}
