"""How much room a disk has, what is kept of it, and what is refused for it."""

import asyncio
import os
from types import SimpleNamespace

import pytest

from services.kit import disk_space
from services.kit.disk_space import format_size, no_space_error, space_at, stream_limit
from services.kit.disks import Disks

GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture
def disk(monkeypatch):
    """A disk whose size and free space a test sets; the paths asked about are in `paths`."""
    made = SimpleNamespace(total=100 * GIB, free=50 * GIB, paths=[])

    def statvfs(path):
        made.paths.append(path)
        return SimpleNamespace(f_frsize=1, f_bavail=made.free, f_blocks=made.total)

    monkeypatch.setattr(disk_space.os, "statvfs", statvfs)
    return made


def test_the_space_is_that_of_the_disk_also_before_the_folder_is_made(tmp_path):
    space, real = space_at(tmp_path / "not" / "yet"), os.statvfs(tmp_path)
    assert (space.path, space.total) == (tmp_path / "not" / "yet", real.f_blocks * real.f_frsize)
    assert 0 < space.free <= space.total


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "0.977 KiB"), (3 * MIB, "3 MiB"), (1.5 * GIB, "1.5 GiB")],
)
def test_sizes_in_words(count, words):
    assert format_size(count) == words


@pytest.mark.parametrize(
    ("total", "setting_mib", "reserve"),
    [
        (100 * GIB, 0, 2 * GIB),
        (10 * GIB, 0, GIB // 2),
        (100 * GIB, 10 * 1024, 10 * GIB),
        (100 * GIB, 1, MIB),
    ],
)
def test_what_is_kept_for_what_runs(disk, tmp_path, total, setting_mib, reserve):
    disk.total, disk.free = total, reserve
    disks = Disks({"log": tmp_path}, setting_mib)
    assert disks.shortage({}, {}) == ""
    disk.free = reserve - 1
    assert f"{format_size(reserve)} are reserved" in disks.shortage({}, {})


def test_a_refusal_says_what_is_where_and_what_is_missing(disk, tmp_path):
    disk.free = 3 * GIB
    disks = Disks({"log": tmp_path / "log", "code": tmp_path / "code"})
    missing = disks.shortage({"code": 2 * GIB}, {})
    assert missing == (
        f"the disk of the code has 3 GiB free at {tmp_path / 'code'}; 2 GiB are needed and 2 GiB are "
        "reserved for running work (STEADFAST_DISK_RESERVE_MIB): make room for 1 GiB more there"
    )
    problem = no_space_error("the experiment", missing).problem
    assert problem.code == "no_space"
    assert problem.message == f"the experiment is refused: {missing}. Running work continues"


def test_a_disk_that_is_away_is_not_full(monkeypatch, tmp_path):
    def away(_):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(disk_space.os, "statvfs", away)
    assert Disks({"log": tmp_path}).shortage({}, {}) == ""


def test_what_operators_see(disk, tmp_path):
    disks = Disks({"log": tmp_path})
    asyncio.run(disks.refresh())
    values = {reading.name: dict(reading.values) for reading in disks.readings()}
    assert values == {
        "disk_free_bytes": {("log",): 50 * GIB},
        "disk_bytes": {("log",): 100 * GIB},
        "disk_reserve_bytes": {("log",): 2 * GIB},
    }


@pytest.mark.parametrize(
    ("total", "setting_mib", "limit"),
    [
        (1000 * GIB, 0, 16 * GIB),
        (40 * GIB, 0, 5 * GIB),
        (40 * GIB, 100, 100 * MIB),
        (40 * GIB, 100 * 1024, 5 * GIB),
        (80 * MIB, 0, 10 * MIB),
    ],
)
def test_streams_get_a_part_of_the_disk_and_at_most_the_setting(disk, tmp_path, total, setting_mib, limit):
    disk.total = total
    assert stream_limit(setting_mib, tmp_path) == limit


def test_without_a_disk_to_look_at_the_setting_counts():
    assert stream_limit(0, None) == 16 * GIB
    assert stream_limit(7, None) == 7 * MIB
