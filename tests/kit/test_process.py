"""How a process that is of no use any more ends: whatever it hangs on, and only then."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.kit.process import STUCK_STATUS
from tests.fixtures.local_cluster import patience, wait_for
from tests.fixtures.tiers import rest_in_full

pytestmark = pytest.mark.live
PROGRAM = """
import asyncio, os, sys, threading, time
from services.kit import logging, process
from services.kit.process_metrics import Measures
from services.kit.self_watch import SelfWatch
from services.kit.settings import ServiceSettings

logging.configure("json", "INFO")
process.EXIT_TIMEOUT_S = 0.5

def blocks():
    {blocks}

async def work():
    settings = ServiceSettings(loop_blocked_s={limit_s}, stuck_s={stuck_s})
    with SelfWatch("searcher", settings, Measures("searcher")).watch_loop():
        await asyncio.sleep(0.3)
        print("begun", flush=True)
        blocks()
        # Others can stop it here, and let it go on.
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.sleep(0.6)
    print("done", flush=True)
    return 0

process.run(work())
"""
HOLDS = "sum(range(10**14))"
"""One call that keeps the lock of the interpreter, so that no other thread ever runs."""


@pytest.fixture
def start():
    """Starts processes that hang as they are told; what is left of them ends with the test."""
    started = []

    def begin(blocks, stuck_s=1.0, limit_s=0.2, stderr=subprocess.PIPE):
        code = PROGRAM.format(blocks=blocks, stuck_s=stuck_s, limit_s=limit_s)
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=stderr, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "begun\n"
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_loop_that_never_comes_back_ends_the_process_with_all_stacks(start):
    process = start("time.sleep(10**6)")
    _, output = process.communicate(timeout=60)
    assert process.returncode == STUCK_STATUS
    assert " in blocks\n" in output
    assert '"event": "process.stuck"' in output
    assert "the event loop has been stalled for" in output


def test_so_does_one_that_lets_no_other_thread_run(start):
    process = start(HOLDS)
    _, output = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGPROF
    assert " in blocks\n" in output


def test_so_does_one_whose_output_nobody_reads(start):
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(write, b"x" * 4096):
            pass
    os.set_blocking(write, True)
    process = start("time.sleep(10**6)", stderr=write)
    os.close(write)
    process.communicate(timeout=120)
    os.close(read)
    assert process.returncode == -signal.SIGALRM


def switches(pid):
    """How often threads of a process have gone to sleep so far."""
    statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(
        int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.MULTILINE)[1]) for text in statuses
    )


def test_who_was_stopped_goes_on(start):
    # The loop waits for a line, as in a call that takes a while; it may do so until even a busy machine has
    # stopped it, or sent the line.
    stuck_s = 2.0 * min(patience(), 5.0)
    process = start("sys.stdin.readline()", stuck_s=stuck_s)
    os.kill(process.pid, signal.SIGSTOP)
    over = time.monotonic() + 2 * stuck_s
    wait_for(lambda: time.monotonic() > over, 60, "a stop that is longer than a loop may stand still")
    before = switches(process.pid)
    os.kill(process.pid, signal.SIGCONT)
    # The watchdog has looked again, and again.
    ended = lambda: process.poll() is not None  # noqa: E731
    wait_for(lambda: ended() or switches(process.pid) > before + 3, 60, "its threads to run")
    output, errors = process.communicate("go on\ngo on\n", timeout=60)
    assert (process.returncode, output) == (0, "done\n"), errors


@pytest.mark.parametrize(("stuck_s", "limit_s"), rest_in_full([(0.0, 0.2), (0.5, 0.0)]))
def test_a_setting_of_0_ends_nobody(start, stuck_s, limit_s):
    process = start("[sum(range(10**6)) for _ in range(30)]", stuck_s=stuck_s, limit_s=limit_s)
    assert process.communicate("go on\n", timeout=60)[0] == "done\n"
    assert process.returncode == 0
