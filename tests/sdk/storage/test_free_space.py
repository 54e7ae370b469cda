"""A checkpoint that would fill its disk is refused before its first byte is written."""

import errno

import pytest

from determined.storage import SharedFSStorageManager
from determined.storage import free_space as rooms

MIB = 1 << 20


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "weights").write_bytes(b"w" * 8 * MIB)
    return folder


def test_one_that_fits_is_stored(small_disk, source):
    disk = small_disk(80)
    SharedFSStorageManager(disk.path).upload(source, "a")
    assert (disk.path / "a" / "weights").stat().st_size == 8 * MIB


def test_one_that_leaves_too_little_is_refused_with_the_numbers(small_disk, source):
    disk = small_disk(80)
    disk.fill(leave=9 * MIB)
    with pytest.raises(
        OSError, match=r"takes 8 MiB, 9 MiB are free at .* 2 MiB of these .* room for 1 MiB"
    ) as e:
        SharedFSStorageManager(disk.path).upload(source, "a")
    assert e.value.errno == errno.ENOSPC
    assert not (disk.path / "a").exists()


def test_nobody_is_given_a_folder_on_a_disk_without_room(small_disk):
    disk = small_disk(80)
    storage = SharedFSStorageManager(disk.path / "not" / "yet")
    disk.fill(leave=MIB)
    with pytest.raises(OSError, match="1 MiB are free"), storage.store_path("a"):
        pytest.fail("nothing may be written")
    assert not (disk.path / "not").exists()


def test_a_disk_that_cannot_be_looked_at_is_left_to_who_writes_there(monkeypatch, tmp_path):
    def away(_):
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(rooms.os, "statvfs", away)
    rooms.check_room(tmp_path, 1 << 60)
