"""Heavy work in a process of its own: limited, shared fairly, and gone with whoever asked for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from det_contracts.problems import Refused
from services.kit import offload
from services.kit.admission import Busy
from services.kit.job import Job
from services.kit.offload import Offload

WHERE = "tests.kit.heavy_jobs"
DOUBLE = Job(f"{WHERE}:double")


def in_one(work):
    async def whole():
        heavy = Offload()
        try:
            async with asyncio.timeout(60):
                return await work(heavy)
        finally:
            await heavy.close()
            assert heavy.admission.active == heavy.admission.queued == 0

    return asyncio.run(whole())


def is_alive(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def eventually(true):
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_is_done_elsewhere_and_the_process_kept_for_the_next():
    async def work(heavy):
        first = await heavy.run("a", DOUBLE, {"value": 21})
        second = await heavy.run("b", DOUBLE, {"value": 2})
        return first, second

    first, second = in_one(work)
    assert (first["value"], second["value"]) == (42, 4)
    assert first["pid"] == second["pid"] != os.getpid()
    eventually(lambda: not is_alive(first["pid"]))


def test_files_and_bytes_are_handed_over():
    async def work(heavy):
        with tempfile.TemporaryFile() as file:
            file.write(b"abc")
            file.flush()
            return await heavy.run("a", Job(f"{WHERE}:contents"), None, [file.fileno()])

    assert in_one(work) == b"cba"


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("refuse", "you", "not for you"),
        ("fail", "x", "KeyError"),
        ("grow", 8 << 30, "more than 2048 MiB of memory"),
        ("think", None, "more than 1 s of processor time"),
        ("die", None, "ended with status -9"),
        ("no_such_function", None, "has no attribute"),
    ],
)
def test_what_cannot_be_done_is_refused_and_the_next_is_done(name, argument, message):
    async def work(heavy):
        seconds = 1 if name == "think" else 60
        with pytest.raises(Refused, match=message):
            await heavy.run("a", Job(f"{WHERE}:{name}", seconds=seconds), argument)
        return (await heavy.run("a", DOUBLE, {"value": 1}))["value"]

    assert in_one(work) == 2


def test_one_user_holds_one_process_and_the_next_user_is_served(tmp_path):
    long = Job(f"{WHERE}:nap")

    async def work(heavy):
        busy = [asyncio.create_task(heavy.run("a", long, str(tmp_path / f"{n}"))) for n in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="you have 1 pieces of heavy work") as refusal:
            await heavy.run("a", DOUBLE, {"value": 1})
        assert refusal.value.problem.code == "exhausted"
        assert refusal.value.problem.retry_after_s > 0
        assert (await heavy.run("b", DOUBLE, {"value": 1}))["value"] == 2
        return busy

    tasks = in_one(work)
    assert all(task.done() for task in tasks)


def test_who_goes_away_stops_nothing_and_its_place_is_given_back(tmp_path):
    async def work(heavy):
        for turns in range(12):
            task = asyncio.create_task(heavy.run("a", DOUBLE, {"value": 1}))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        while heavy.admission.active:
            await asyncio.sleep(0.01)
        return (await heavy.run("a", DOUBLE, {"value": 4}))["value"]

    assert in_one(work) == 8


def test_an_idle_process_is_let_go(monkeypatch):
    monkeypatch.setattr(offload, "IDLE_S", 0.05)

    async def work(heavy):
        pid = (await heavy.run("a", DOUBLE, {"value": 1}))["pid"]
        while is_alive(pid):
            await asyncio.sleep(0.01)
        return (await heavy.run("a", DOUBLE, {"value": 3}))["value"]

    assert in_one(work) == 6


PARENT = """
import asyncio, sys
from services.kit.job import Job
from services.kit.offload import Offload
asyncio.run(Offload().run("a", Job("tests.kit.heavy_jobs:nap"), sys.argv[1]))
"""


def test_it_ends_with_a_parent_that_is_killed(tmp_path):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path / "pid")])
    try:
        eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    finally:
        parent.kill()
        parent.wait()
    eventually(lambda: not is_alive(int((tmp_path / "pid").read_text())))
