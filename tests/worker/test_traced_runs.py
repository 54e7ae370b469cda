"""A process whose end another process of its user keeps to itself: the kernel tells a debugger first."""

import os
import signal
import subprocess
import sys

import pytest

from services.kit import host_processes
from worker import process
from worker.shim.life import ESCAPED

pytestmark = pytest.mark.live

DEBUGGER = """
import ctypes, sys, time
PTRACE_SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
print(libc.ptrace(PTRACE_SEIZE, int(sys.argv[1]), 0, 0), flush=True)
time.sleep(1000)
"""


@pytest.fixture
def trace():
    debuggers = []

    def trace(pid):
        debugger = subprocess.Popen([sys.executable, "-c", DEBUGGER, str(pid)], stdout=subprocess.PIPE)
        debuggers.append(debugger)
        if debugger.stdout.readline() != b"0\n":
            pytest.skip("processes may not trace others here")

    yield trace
    for debugger in debuggers:
        debugger.kill()
        debugger.communicate()


def lines_of_the_shim(runs, run):
    return [text for stream, text in runs.lines(run) if stream == "stderr"]


def test_a_run_that_is_killed_ends_although_a_debugger_keeps_its_end(runs, trace):
    """One of its user's other runs could otherwise hold its slots for as long as it likes."""
    run = runs.start("sleep", "1000")
    command = process._read_running(run).command.pid
    trace(command)
    process.kill(run)
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.signal, run_exit.left_over) == (137, signal.SIGKILL, 0)
    assert ESCAPED not in lines_of_the_shim(runs, run)


def test_what_it_left_behind_is_not_said_to_run_on(runs, trace):
    os.mkfifo(runs.folder / "go")
    run = runs.start("sh", "-c", "sleep 1000 & echo child $!; read line < go; exit 5")
    runs.wait_for_line(run, "child ")
    ((_, line),) = [line for line in runs.lines(run) if line[1].startswith("child")]
    trace(int(line.split()[1]))
    (runs.folder / "go").write_text("\n")
    assert runs.ended(run).code == 5
    assert ESCAPED not in lines_of_the_shim(runs, run)


def test_the_status_of_a_process_that_nobody_has_waited_for():
    assert host_processes.unread_status(os.getpid()) is None
    ended = subprocess.Popen(["sh", "-c", "exit 7"], stdout=subprocess.PIPE)
    ended.stdout.read()
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert host_processes.unread_status(ended.pid) == 7 << 8
    ended.communicate()
    assert host_processes.unread_status(ended.pid) is None


THREADS = """
import ctypes, os, threading, time
threading.Thread(target=lambda: (print("on", flush=True), time.sleep(1000))).start()
exit_thread = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
ctypes.CDLL(None).syscall(exit_thread, 0)
"""


def test_a_process_whose_first_thread_has_ended_goes_on(runs):
    run = runs.python(THREADS)
    runs.wait_for_line(run, "on")
    pid = process._read_running(run).command.pid
    runs.eventually(lambda: _state(pid) == "Z", "the end of the first thread")
    assert host_processes.unread_status(pid) is None
    process.kill(run)
    assert runs.ended(run).code == 137


def _state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
