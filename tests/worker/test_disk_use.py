"""What the files of a run take, and the end of one that takes too much."""

import asyncio
import os

import pytest

from worker import disk_use
from worker.disk_use import LEAST_BYTES, excess
from worker.settings import WorkerSettings

MIB = 1 << 20


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "run"
    (made / "workdir").mkdir(parents=True)
    return made


def fill(path, mib):
    path.write_bytes(b"x" * mib * MIB)


def test_files_are_added_up_wherever_they_lie(folder):
    fill(folder / "workdir" / "one", 2)
    (folder / "workdir" / "spool").mkdir()
    fill(folder / "workdir" / "spool" / "two", 2)
    assert excess(folder, folder, 5 * MIB) == ""
    reason = excess(folder, folder, 4 * MIB)
    assert reason.startswith("it may take 4 MiB of this worker's disk (STEADFAST_WORKER_DISK_MIB)")


def test_output_has_a_limit_of_its_own(folder):
    (folder / "spool").mkdir()
    fill(folder / "spool" / "1.log", 2)
    assert excess(folder, folder, MIB) == ""


def test_a_hole_takes_nothing_and_a_second_name_neither(folder):
    with open(folder / "workdir" / "hole", "wb") as file:
        file.truncate(1 << 40)
    fill(folder / "workdir" / "one", 2)
    for n in range(10):
        os.link(folder / "workdir" / "one", folder / "workdir" / f"name{n}")
    assert excess(folder, folder, 3 * MIB) == ""


def test_what_a_link_names_is_not_counted(folder, tmp_path):
    fill(tmp_path / "elsewhere", 4)
    (folder / "workdir" / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "workdir" / "loop").symlink_to("..")
    assert excess(folder, folder, 2 * MIB) == ""


def test_empty_files_count_because_they_use_up_the_file_system(folder):
    for n in range(300):
        (folder / "workdir" / f"{n}").touch()
    assert excess(folder, folder, 250 * LEAST_BYTES)


def test_folders_that_cannot_be_measured_are_too_much(folder):
    opened = os.open(folder / "workdir", os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=opened)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.close(opened)
    assert "nested too deeply" in excess(folder, folder, MIB)


def test_a_folder_that_is_gone_takes_nothing(tmp_path):
    assert excess(tmp_path / "gone", tmp_path, 1) == ""


HIDES = """
import os, time
file = open("hidden", "wb")
os.unlink("hidden")
file.write(b"x" * (6 << 20))
file.flush()
print("written", flush=True)
time.sleep(1000)
"""


@pytest.mark.live
def test_deleted_files_that_are_open_count(runs):
    run = runs.python(HIDES, cwd=runs.folder)
    runs.wait_for_line(run, "written")
    assert excess(run, run, 8 * MIB) == ""
    assert excess(run, run, 5 * MIB)


class FakeRun:
    def __init__(self, folder, **order):
        self.folder = folder
        self.order = type("Order", (), {"started_at": 1.0, "exceeded": "", "killed": "", **order})
        self.done = asyncio.Event()
        self.ended = asyncio.Event()

    async def end_as_failed(self, reason):
        self.order.exceeded = reason
        self.ended.set()


class Folders:
    def folder_of(self, run_dir):
        return run_dir


def test_who_takes_too_much_is_ended_once_and_others_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_use, "EVERY_S", 0.001)
    runs = {}
    orders = {"small": {}, "large": {}, "over": {"killed": "by ann"}, "new": {"started_at": 0}}
    for name, order in orders.items():
        (tmp_path / name).mkdir()
        fill(tmp_path / name / "file", 1 if name == "small" else 4)
        runs[name] = FakeRun(tmp_path / name, **order)

    async def watch():
        settings = WorkerSettings(worker_home=tmp_path, worker_disk_mib=2)
        watching = asyncio.create_task(disk_use.watch(settings, Folders(), runs))
        await asyncio.wait_for(runs["large"].ended.wait(), 60)
        watching.cancel()

    asyncio.run(watch())
    assert "it may take 2 MiB" in runs["large"].order.exceeded
    assert not any(runs[name].ended.is_set() for name in ("small", "over", "new"))


def test_without_a_limit_nothing_is_measured(tmp_path):
    asyncio.run(disk_use.watch(WorkerSettings(worker_home=tmp_path), Folders(), {}))
