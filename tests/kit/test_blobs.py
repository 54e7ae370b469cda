"""Archives by content: one suite, a directory and a real S3 server."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import threading
import time

import pytest
from urllib3.exceptions import ProtocolError

from services.kit import blobs
from tests.fixtures.s3_server import BUCKET, KEY, SECRET, s3_server


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.live)])
def store(request, tmp_path):
    """Each kind of store, empty."""
    if request.param == "directory":
        yield blobs.connect(str(tmp_path / "blobs"))
        return
    with s3_server(tmp_path) as url:
        yield blobs.connect(f"s3://{BUCKET}/contexts", endpoint_url=url, access_key=KEY, secret_key=SECRET)


def _key(content):
    return hashlib.sha256(content).hexdigest()


def test_what_was_put_can_be_opened(store):
    content = os.urandom(3 << 20)
    assert not store.exists(_key(content))
    store.put(_key(content), io.BytesIO(content))
    assert store.exists(_key(content))
    with store.open(_key(content)) as file:
        assert file.read() == content


def test_putting_again_changes_nothing(store):
    store.put(_key(b"x"), io.BytesIO(b"x"))
    store.put(_key(b"x"), io.BytesIO(b"something else"))
    with store.open(_key(b"x")) as file:
        assert file.read() == b"x"


def test_a_blob_begins_where_its_file_stands(store):
    file = io.BytesIO(b"skipped" + b"kept")
    file.seek(7)
    store.put(_key(b"kept"), file)
    with store.open(_key(b"kept")) as blob:
        assert blob.read() == b"kept"


def test_a_missing_blob_is_named(store):
    with pytest.raises(blobs.BlobMissing, match=_key(b"none")):
        store.open(_key(b"none"))


def test_blobs_are_listed_and_deleted(store):
    contents = [b"one", b"two", b"three"]
    for content in contents:
        store.put(_key(content), io.BytesIO(content))
    assert store.keys() == set(map(_key, contents))
    for _ in range(2):
        store.delete(_key(b"two"))
    assert store.keys() == {_key(b"one"), _key(b"three")}
    assert not store.exists(_key(b"two"))


def test_a_connection_that_breaks_off_is_an_error_of_the_storage():
    class Broken:
        def read(self, size):
            raise ProtocolError("Connection broken")

    with pytest.raises(OSError, match="the blob store refuses: Connection broken"):
        blobs._Body(Broken(), "the blob store").read()


@pytest.mark.parametrize("key", ["", "../x", "A" * 64, "a" * 63])
def test_keys_that_are_none_are_refused(store, key):
    for ask in (store.exists, store.open):
        with pytest.raises(ValueError, match="SHA-256"):
            ask(key)


def test_many_at_once_leave_one_whole_file(tmp_path):
    store = blobs.connect(str(tmp_path))
    content = os.urandom(1 << 20)
    threads = [
        threading.Thread(target=store.put, args=(_key(content), io.BytesIO(content))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [_key(content)]


def killed_while_it_stores(root, content):
    """Run a process that is killed in the middle; returns its draft."""

    class Killing(io.BytesIO):
        def read(self, size=-1):
            os.kill(os.getpid(), signal.SIGKILL)

    before = set(root.rglob(".*"))
    if not (child := os.fork()):
        blobs.connect(str(root)).put(_key(content), Killing(content))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (draft,) = set(root.rglob(".*")) - before
    return draft


def test_what_killed_processes_left_goes_and_what_others_are_writing_stays(tmp_path):
    store, day = blobs.connect(str(tmp_path)), 24 * 3600
    store.put(_key(b"kept"), io.BytesIO(b"kept"))
    old, fresh = (killed_while_it_stores(tmp_path, content) for content in (b"old", b"fresh"))
    foreign = old.with_name(".directory")
    foreign.touch()
    for path in (old, foreign, store._path(_key(b"kept"))):
        os.utime(path, (time.time() - 2 * day,) * 2)

    class Slow(io.BytesIO):
        """While it is read, another process begins, and stores something."""

        def read(self, size=-1):
            blobs.connect(str(tmp_path)).put(_key(b"another"), io.BytesIO(b"another"))
            return super().read(size)

    store.put(_key(b"slow"), Slow(b"slow"))
    assert (old.exists(), fresh.exists(), foreign.exists()) == (False, True, True)
    assert store.keys() == {_key(content) for content in (b"kept", b"another", b"slow")}


@pytest.mark.parametrize("location", ["", "relative/path", "ftp://host/x", "s3:///no-bucket"])
def test_places_that_are_none_are_refused(location):
    with pytest.raises(ValueError, match="neither an absolute directory nor"):
        blobs.connect(location)


def test_an_endpoint_must_be_an_address():
    with pytest.raises(ValueError, match="endpoint"):
        blobs.connect("s3://b", endpoint_url="localhost:9000", access_key="k", secret_key="s")


@pytest.mark.live
def test_a_store_that_refuses_is_named(tmp_path):
    with s3_server(tmp_path) as url:
        wrong = blobs.connect(f"s3://{BUCKET}/c", endpoint_url=url, access_key=KEY, secret_key="no")
        with pytest.raises(OSError, match=f"s3://{BUCKET}/c refuses"):
            wrong.put(_key(b"x"), io.BytesIO(b"x"))
