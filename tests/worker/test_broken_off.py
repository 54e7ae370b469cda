"""What a failing disk breaks off: nothing is left behind."""

import asyncio
import errno
import os

import pytest

from tests.fixtures.own_time import set_time
from tests.worker.app_host import Host
from worker import process
from worker.run import Run
from worker.shim import life
from worker.shim.life import Shim


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_takes_no_exit_record_keeps_no_file_open(tmp_path, monkeypatch):
    """The shim tries again for as long as it takes, and a process may open some thousand files."""
    shim, pauses = Shim.__new__(Shim), []
    shim._exit_path = str(tmp_path / "exit.json")
    write, full = os.write, [True]

    def write_elsewhere(file, data):
        if full and os.readlink(f"/proc/self/fd/{file}").startswith(str(tmp_path)):
            no_space()
        return write(file, data)

    def full_disk(seconds):
        pauses.append(len(os.listdir("/proc/self/fd")))
        if len(pauses) == 3:
            full.clear()

    monkeypatch.setattr(os, "write", write_elsewhere)
    set_time(monkeypatch, life, sleep=full_disk)
    shim._exit(code=3)
    assert process.read_exit(tmp_path).code == 3
    assert len(set(pauses)) == 1


def test_a_run_whose_end_cannot_be_recorded_leaves_nobody_reading_its_output(tmp_path, monkeypatch):
    host = Host(tmp_path)
    host.order("mine", (0,))
    monkeypatch.setattr(process, "state_of", lambda folder: "lost")
    monkeypatch.setattr(process, "end_lost_run", no_space)
    run = Run(host.orders.get("mine"), host.orders, host.log, None, (), "w", None)

    async def work():
        with pytest.raises(OSError, match="No space"):
            await run.execute(set())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(work())
