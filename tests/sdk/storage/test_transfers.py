"""Transfers that are cut off, damaged, or watched."""

import contextlib
import http.server
import os
import random
import subprocess
import sys
import threading

import pytest

from determined.storage import S3StorageManager, bucket_storage, download, s3_bucket, transfer
from determined.storage.bucket import StoreError
from determined.storage.parallel import run_all
from determined.storage.progress import Meter
from determined.storage.s3_streams import Streams
from tests.fixtures.http_server import serving
from tests.sdk.storage.conftest import BUCKET, KEY, SECRET, Given

MIB = 1 << 20
SILENT = Meter(0, None)


class Flaky:
    """A store whose connections close early; those after the first `after` are whole."""

    def __init__(self, content, after):
        self.content, self.after, self.calls = content, after, 0

    @contextlib.contextmanager
    def get(self, key, offset, length):
        self.calls += 1
        whole = self.content[offset : offset + length]
        yield Given(whole if self.calls > self.after else whole[:-1])


def test_a_cut_off_range_is_fetched_again(tmp_path):
    store = Flaky(b"0123456789", after=2)
    download.download(store, "id/", tmp_path, {"f": 10}, {}, SILENT)
    assert (tmp_path / "f").read_bytes() == b"0123456789"


def test_a_store_that_keeps_cutting_off_never_leaves_a_short_file(tmp_path):
    store = Flaky(b"0123456789", after=99)
    with pytest.raises(download.ShortRead, match="9 of 10 bytes"):
        download.download(store, "id/", tmp_path, {"f": 10}, {}, SILENT)
    assert list(tmp_path.iterdir()) == []


class Shaky(http.server.BaseHTTPRequestHandler):
    """Answers what its server was told to, one after another; `None` hangs up."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requests.append(self.headers["Range"])
        status = self.server.answers.pop(0)
        if status is None:
            self.close_connection = True
            return
        content = b"0123456789" if status in (200, 206) else b"<Error><Code>Nope</Code></Error>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def shaky():
    """A server, and streams from it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shaky)
    server.daemon_threads, server.requests = True, []
    provider = s3_bucket.provider((KEY, SECRET))
    client = s3_bucket.connect(f"127.0.0.1:{server.server_port}", False, provider, "us-east-1")
    streams = Streams(client, BUCKET, provider)
    with serving(server):
        yield server, streams
        streams.close()


def fetch(streams, target):
    download.download(streams, "id/", target, {"f": 10}, {}, SILENT)
    return (target / "f").read_bytes()


@pytest.mark.parametrize("answers", [[206], [200], [None, 206], [503, None, 206], [206, None, 206]])
def test_a_store_that_is_busy_or_hangs_up_is_asked_again(shaky, tmp_path, answers):
    server, streams = shaky
    twice = answers[0] == 206 and len(answers) > 1
    server.answers = list(answers)
    for _ in range(1 + twice):
        assert fetch(streams, tmp_path) == b"0123456789"
    assert server.requests == ["bytes=0-9"] * len(answers)


def test_a_store_that_refuses_is_not(shaky, tmp_path):
    server, streams = shaky
    server.answers = [403]
    with pytest.raises(StoreError, match="id/f: 403 Forbidden: Nope"):
        fetch(streams, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_store_without_ranges_does_not_fill_them_with_the_beginning(shaky, tmp_path):
    server, streams = shaky
    server.answers = [200]
    with pytest.raises(StoreError, match="other bytes than 5 from 5"), streams.get("id/f", 5, 5):
        pass


@pytest.fixture
def storage(s3_url, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "PART_SIZE_BYTES", 5 * MIB)
    return S3StorageManager(BUCKET, KEY, SECRET, s3_url, f"transfers/{tmp_path.name}")


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "source"
    (root / "sub").mkdir(parents=True)
    (root / "large").write_bytes(random.Random(1).randbytes(23 * MIB + 11))
    (root / "sub" / "small").write_bytes(b"12345")
    (root / "empty").write_bytes(b"")
    return root


class Watched:
    """The streams of a storage, with what was fetched; some ranges are cut off or damaged."""

    def __init__(self, streams):
        self._streams = streams
        self.fetched = []
        self.cut_off = lambda offset: False
        self.damaged = lambda offset: False

    def close(self):
        self._streams.close()

    @contextlib.contextmanager
    def get(self, key, offset, length):
        self.fetched.append((key.rsplit("/", 1)[1], offset))
        with self._streams.get(key, offset, length) as body:
            if not self.cut_off(offset) and not self.damaged(offset):
                yield body
                return
            buffer = memoryview(bytearray(length))
            content = bytes(buffer[: body.readinto(buffer)])
            yield Given(content[:-7] if self.cut_off(offset) else b"?" + content[1:], body.origin)


@pytest.fixture
def client(storage):
    watched = Watched(storage._streams())
    storage._streams = lambda: watched
    return watched


def same(left, right):
    names = [p.relative_to(left) for p in left.rglob("*") if p.is_file()]
    assert names
    for name in names:
        assert (left / name).read_bytes() == (right / name).read_bytes()


@pytest.mark.live
def test_a_download_that_broke_off_goes_on_where_it_was(storage, client, source, tmp_path):
    storage.upload(source, "one")
    client.cut_off = lambda offset: offset == 15 * MIB
    back = tmp_path / "back"
    with pytest.raises(download.ShortRead):
        storage.download("one", back)
    assert not (back / "large").exists()
    before = client.fetched.copy()
    client.fetched.clear()
    client.cut_off = lambda offset: False
    received = []
    storage.download("one", back, progress=lambda done, total: received.append((done, total)))
    same(source, back)
    assert ("large", 15 * MIB) in client.fetched
    assert len({offset for name, offset in [*before, *client.fetched] if name == "large"}) == 5
    good = {at for at in before if at not in client.fetched}
    assert good
    total = 23 * MIB + 11 + 5
    assert received[-1] == (total, total)
    assert sorted(p.name for p in back.iterdir()) == ["empty", "large", "sub"]
    client.fetched.clear()
    storage.download("one", back)
    assert client.fetched == []


@pytest.mark.live
def test_what_arrives_damaged_is_fetched_again_or_refused(storage, client, source, tmp_path):
    storage.upload(source, "one")
    once = {5 * MIB}
    client.damaged = lambda offset: offset in once and not once.remove(offset)
    storage.download("one", tmp_path / "back")
    same(source, tmp_path / "back")
    assert client.fetched.count(("large", 5 * MIB)) == 2
    client.damaged = lambda offset: offset == 10 * MIB
    with pytest.raises(download.Corrupt, match=f"large arrived damaged at byte {10 * MIB}"):
        storage.download("one", tmp_path / "other")
    assert not (tmp_path / "other" / "large").exists()


@pytest.mark.live
def test_a_corrupted_stored_file_is_detected(storage, source, tmp_path, s3_root):
    storage.upload(source, "one")
    (stored,) = s3_root.glob(f"**/{tmp_path.name}/one/sub/small")
    stored.write_bytes(b"12435")
    with pytest.raises(OSError, match="small arrived damaged"):
        storage.download("one", tmp_path / "back")
    assert not (tmp_path / "back" / "sub" / "small").exists()


@pytest.mark.live
@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out"])
def test_objects_with_names_that_lead_outside_are_refused(storage, source, tmp_path, monkeypatch, name):
    storage.upload(source, "one")
    monkeypatch.setattr(storage, "_objects", lambda storage_id: {name: 5})
    with pytest.raises(ValueError, match="not a name inside"):
        storage.download("one", tmp_path / "back" / "folder")
    assert not (tmp_path / "back").exists()


@pytest.mark.live
@pytest.mark.parametrize("content", [b"", b"{", b'{"large": 5}'])
def test_damaged_checksums_are_reported(storage, source, tmp_path, s3_root, content):
    storage.upload(source, "one")
    (checksum_file,) = s3_root.glob(f"**/{tmp_path.name}/one.checksums/*.json")
    checksum_file.write_bytes(content)
    with pytest.raises(
        OSError, match=rf"checksums in object .*{checksum_file.name} .* are damaged .*delete that object"
    ):
        storage.download("one", tmp_path / "back")
    storage._client.remove_object(BUCKET, checksum_file.relative_to(s3_root / BUCKET).as_posix())
    storage.download("one", tmp_path / "back")
    same(source, tmp_path / "back")


@pytest.mark.live
def test_a_file_that_is_there_already_is_kept_or_replaced(storage, client, source, tmp_path):
    storage.upload(source, "one")
    back = tmp_path / "back"
    storage.download("one", back)
    client.fetched.clear()
    (back / "sub" / "small").write_bytes(b"54321")
    storage.download("one", back)
    same(source, back)
    assert client.fetched == [("small", 0)]


@pytest.mark.live
def test_a_partial_file_of_another_download_is_not_used(storage, source, tmp_path):
    storage.upload(source, "one")
    back = tmp_path / "back"
    back.mkdir()
    (back / ".large.partial").write_bytes(b"?" * 30 * MIB)
    (back / ".empty.partial").write_bytes(b"?")
    storage.download("one", back)
    same(source, back)
    assert sorted(p.name for p in back.iterdir()) == ["empty", "large", "sub"]


MOVE = """
import re, sys
from determined.storage import S3StorageManager
storage = S3StorageManager("checkpoints", "AKEY", "SKEY", sys.argv[1])
storage.upload(sys.argv[2], "memory")
storage.download("memory", sys.argv[3])
storage.delete("memory", ["**/*"])
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.full
@pytest.mark.live
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux for the peak of memory")
def test_memory_does_not_grow_with_the_file(s3_url, tmp_path):
    large = tmp_path / "source" / "large"
    large.parent.mkdir()
    with large.open("wb") as file:
        file.truncate(400 * MIB)
    command = [sys.executable, "-c", MOVE, s3_url, str(large.parent), str(tmp_path / "back")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (tmp_path / "back" / "large").stat().st_size == 400 * MIB
    assert int(ran.stdout) < 300 * 1024, "KiB at most, for 400 MiB there and back"


@pytest.mark.live
def test_checksums_are_no_part_of_the_checkpoint(storage, source):
    storage.upload(source, "one", ["large"])
    storage.upload(source, "one", ["sub/small", "empty"])
    assert storage.list_resources("one").keys() == {"large", "sub/", "sub/small", "empty"}
    place = storage._checksums("one")
    checksums = transfer.kept_checksums(storage._store, place)
    assert {name: len(blocks.crcs) for name, blocks in checksums.items()} == {
        "large": 5,
        "sub/small": 1,
        "empty": 0,
    }
    assert storage.delete("one", ["sub"]) == {"empty": 0, "large": 23 * MIB + 11}
    assert transfer.kept_checksums(storage._store, place)
    assert storage.delete("one", ["**/*"]) == {}
    assert list(storage._client.list_objects(BUCKET, prefix=storage._prefix, recursive=True)) == []


@pytest.mark.live
def test_files_stored_again_under_one_id_have_their_last_checksum(storage, source, tmp_path):
    storage.upload(source, "one", ["sub/small"])
    (source / "sub" / "small").write_bytes(b"98765")
    storage.upload(source, "one", ["sub/small"])
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "small").read_bytes() == b"98765"
    (source / "sub" / "small").write_bytes(b"longer than before")
    storage.upload(source, "one", ["sub/small"], checksums=False)
    storage.download("one", tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "small").read_bytes() == b"longer than before"


@pytest.mark.live
def test_a_file_that_shrinks_during_the_upload_is_reported(storage, source, monkeypatch):
    listed = bucket_storage.list_directory
    monkeypatch.setattr(bucket_storage, "list_directory", lambda root: {**listed(root), "sub/small": 50})
    with pytest.raises(OSError, match=r"sub/small became shorter while it was stored: 5 of 50 bytes"):
        storage.upload(source, "one")
    monkeypatch.setattr(bucket_storage, "list_directory", lambda root: {"large": 30 * MIB})
    with pytest.raises(OSError, match=r"large became shorter while it was stored"):
        storage.upload(source, "two")
    assert list(storage._client.list_objects(BUCKET, prefix=f"{storage._prefix}/two/", recursive=True)) == []


@pytest.mark.live
def test_progress_of_an_upload(storage, source):
    received = []
    storage.upload(source, "one", progress=lambda done, total: received.append((done, total)))
    total = 23 * MIB + 11 + 5
    assert received[0] == (0, total)
    assert received[-1] == (total, total)
    assert received == sorted(received)


def test_a_failing_job_is_raised_and_the_others_are_not_begun():
    done, begun = [], threading.Event()

    def fails():
        begun.set()
        raise KeyError("x")

    def waits():
        assert begun.wait(30)
        done.append(1)

    with pytest.raises(KeyError):
        run_all([fails, waits, *[waits] * 1000], threads=2)
    assert len(done) < 1000
    run_all([], threads=0)


def test_an_iterator_that_fails_is_raised():
    def jobs():
        yield os.getpid
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run_all(jobs(), threads=3)
