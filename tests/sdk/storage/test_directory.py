import errno
import os

import pytest

from determined.storage import SharedFSStorageManager, validate_manager


@pytest.fixture
def source(tmp_path):
    directory = tmp_path / "source"
    directory.mkdir()
    (directory / "state").write_text("x" * 10)
    os.utime(directory / "state", (1_000_000, 1_000_000))
    return directory


def test_modification_times_are_kept(source, tmp_path):
    storage = SharedFSStorageManager(tmp_path / "storage")
    storage.upload(source, "one")
    storage.download("one", tmp_path / "back")
    for root in (tmp_path / "storage" / "one", tmp_path / "back"):
        assert (root / "state").stat().st_mtime == 1_000_000


def test_restore_path_is_the_stored_directory(source, tmp_path, caplog):
    storage = SharedFSStorageManager(tmp_path / "storage")
    storage.upload(source, "one")
    with storage.restore_path("one") as path:
        assert path == tmp_path / "storage" / "one"
    assert caplog.text == ""
    with storage.restore_path("one", lambda name: False) as path:
        assert (path / "state").exists()
    assert "Ignoring partial checkpoint download" in caplog.text


def test_a_place_that_refuses_is_named_with_the_user(source, tmp_path):
    (tmp_path / "file").write_text("")
    storage = SharedFSStorageManager(tmp_path / "file" / "storage")
    for act in (lambda: storage.upload(source, "one"), lambda: storage.pre_store_path("one")):
        with pytest.raises(OSError, match=rf"{tmp_path}/file/storage refuses user id {os.getuid()}: Not a"):
            act()
    with pytest.raises(OSError, match="refuses user id"):
        validate_manager(storage)


def test_a_full_disk_is_reported_and_leaves_no_short_file(source, tmp_path, monkeypatch):
    def full(source, target, count):
        os.write(target, b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", full)
    storage = SharedFSStorageManager(tmp_path / "storage")
    with pytest.raises(OSError, match=r"refuses user id .* No space left on device") as caught:
        storage.upload(source, "one")
    assert caught.value.errno == errno.ENOSPC
    assert list((tmp_path / "storage" / "one").iterdir()) == []


def test_file_systems_that_do_not_copy_in_the_kernel(source, tmp_path, monkeypatch):
    counts = []

    def crossing(source, target, count):
        counts.append(count)
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", crossing)
    SharedFSStorageManager(tmp_path / "storage").upload(source, "one")
    assert (tmp_path / "storage" / "one" / "state").read_text() == "x" * 10
    assert counts


def test_many_files_and_their_times(tmp_path):
    source = tmp_path / "source"
    for n in range(60):
        path = source / f"d{n % 7}" / f"{n}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([n]) * n)
        os.utime(path, (n, n))
    os.utime(source / "d3", (5, 5))
    received = []
    storage = SharedFSStorageManager(tmp_path / "storage")
    storage.upload(source, "one", progress=lambda done, total: received.append((done, total)))
    for n in range(60):
        copied = tmp_path / "storage" / "one" / f"d{n % 7}" / f"{n}"
        assert copied.read_bytes() == bytes([n]) * n
        assert copied.stat().st_mtime == n
    assert (tmp_path / "storage" / "one" / "d3").stat().st_mtime == 5
    total = sum(range(60))
    assert received[0] == (0, total)
    assert received[-1] == (total, total)
    assert received == sorted(received)


def test_a_source_that_is_missing_is_not_blamed_on_the_storage(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        SharedFSStorageManager(tmp_path / "storage").upload(tmp_path / "missing", "one")
    assert "refuses" not in str(caught.value)
