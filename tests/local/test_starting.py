"""What a start waits for, and when it is given up."""

import os
import subprocess
import sys

import pytest

from services.kit import host_processes
from services.local import control, starting
from services.local.home import Home, Plan
from services.local.preconditions import CannotStart
from services.local.starting import AT_WORK, STALL_S, Progress, Start
from tests.fixtures.ports import reserved_port

NOBODY = frozenset()
DAY = 86400


@pytest.fixture
def home(tmp_path):
    return Home("test", tmp_path)


def stalled_after(seconds, step, ready, work):
    """Whether a start is given up, of which every `step` seconds something is seen."""
    progress = Progress(0.0)
    for now in range(0, seconds + 1, step):
        progress.note(now, ready(now), {"gateway": work(now)})
        if progress.has_stalled(now):
            return True
    return False


def test_a_start_is_not_given_up_while_a_program_is_at_work():
    """However long that takes: the machine may be slow, or the log long."""
    assert not stalled_after(DAY, 10, lambda now: NOBODY, lambda now: now * 2 * AT_WORK)


def test_a_start_in_which_nothing_moves_is_given_up():
    assert stalled_after(int(STALL_S), 10, lambda now: NOBODY, lambda now: 7.0)
    # Who waits for another wakes up now and then.
    assert stalled_after(int(STALL_S), 10, lambda now: NOBODY, lambda now: now * AT_WORK / 2)


def test_a_program_that_fails_again_and_again_is_not_at_work():
    """Each of its processes is as busy as a start should be, and gets no further than the first."""
    assert stalled_after(3 * int(STALL_S), 1, lambda now: NOBODY, lambda now: now % 60)


def test_each_further_program_that_is_ready_gives_time():
    steps = [frozenset("ab"[: now // 150]) for now in range(301)]
    assert not stalled_after(300, 10, lambda now: steps[now], lambda now: 0.0)
    # One that comes and goes does so once.
    assert stalled_after(900, 10, lambda now: steps[now % 300], lambda now: 0.0)


def test_the_time_for_which_a_process_has_been_at_work_is_known():
    before = host_processes.active_s(os.getpid())
    while host_processes.active_s(os.getpid()) < before + 0.1:
        sum(range(1000))
    child = subprocess.Popen(["sleep", "600"])
    try:
        assert child.pid in host_processes.children_of(os.getpid())
        assert host_processes.active_s(child.pid) < 60
    finally:
        child.kill()
        child.wait()
    assert child.pid not in host_processes.children_of(os.getpid())
    assert host_processes.active_s(child.pid) == 0.0


def start_of(home, monkeypatch, *programs, stall=STALL_S):
    """A start that looks at once, of programs that do not answer."""
    monkeypatch.setattr(starting, "QUIET_S", 0.0)
    monkeypatch.setattr(starting, "LOOK_S", 0.0)
    monkeypatch.setattr(starting, "STALL_S", stall)
    home.write("processes.json", {"supervisor": os.getpid()} | dict.fromkeys(programs, os.getpid()))
    home.write("ports.json", {"monitor": reserved_port()} | {name: reserved_port() for name in programs})
    return Start(Plan(name="test", port=reserved_port()), home, os.getpid())


def test_what_is_waited_for_is_said_on_a_terminal_when_it_changes(home, monkeypatch, capsys):
    start = start_of(home, monkeypatch, "broker", "gateway")
    home.write("processes.json", {"broker": os.getpid()})
    start.look()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    start.look()
    start.look()
    home.write("processes.json", {"broker": os.getpid(), "gateway": os.getpid()})
    start.look()
    monkeypatch.setattr(starting, "health_problems", lambda *page: [])
    start.look()
    lines = [line.partition("waiting for: ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["broker, services", "broker, gateway", "the workers"]


def test_nothing_is_said_of_a_start_that_is_as_fast_as_usual(home, monkeypatch, capsys):
    start_of(home, monkeypatch)
    monkeypatch.setattr(starting, "QUIET_S", 60.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Start(Plan(name="test"), home, os.getpid()).look()
    assert capsys.readouterr().err == ""


def test_a_start_that_is_given_up_names_what_is_not_ready_and_its_last_lines(home, monkeypatch):
    start = start_of(home, monkeypatch, "broker", "gateway", stall=0.0)
    (home.folder("logs") / "gateway.log").write_text("reading the log\nwaiting for a lock\n")
    with pytest.raises(CannotStart) as given_up:
        start.look()
    lines = str(given_up.value).splitlines()
    assert str(home.path / "logs") in lines[0]
    names = [line.split(":")[0] for line in lines[1:]]
    assert names == ["  broker", "  gateway", "    reading the log", "    waiting for a lock"]


def test_a_cluster_that_does_not_start_is_stopped(home, monkeypatch):
    start_of(home, monkeypatch, stall=0.0)
    (home.path / "processes.json").unlink()
    supervisors = []

    def start(command, **options):
        # Its command line is that of a supervisor.
        script = "import time; time.sleep(600)"
        supervisors.append(subprocess.Popen([sys.executable, "-c", script, "services.local"]))
        return supervisors[0]

    try:
        with pytest.raises(CannotStart, match="services: are being loaded"):
            control.up(Plan(name="test", port=reserved_port()), home, start=start)
        assert supervisors[0].poll() is not None
    finally:
        supervisors[0].kill()
        supervisors[0].wait()
