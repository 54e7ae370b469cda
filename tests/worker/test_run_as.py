"""A command that its shim starts as another user."""

import ctypes
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.fixtures.other_users import ANN, BOB, needs_root
from worker import process
from worker.account import max_processes
from worker.shim.run_as import JOIN_SESSION_KEYRING, keyctl_number

pytestmark = [pytest.mark.live, needs_root]

STATUS = "cat /proc/self/status"


@pytest.fixture
def open_folder():
    """A folder that every user can enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o711)
    yield made
    shutil.rmtree(made)


def started(runs, *argv, name="run", cwd="/", binds=()):
    run = runs.dir(name)
    env = {"PATH": os.environ["PATH"]}
    process.prepare(run, argv, cwd, env, run_as=process.RunAs(ANN, BOB, binds))
    process.start(run)
    return run


def fields(runs, run):
    runs.ended(run)
    return dict(text.split(":\t", 1) for _, text in runs.lines(run) if ":\t" in text)


@pytest.fixture
def groups():
    """This process, and so a shim that it starts, is in further groups."""
    before = os.getgroups()
    os.setgroups([0, 12345])
    yield
    os.setgroups(before)


def test_it_has_that_user_and_no_way_back(runs, groups):
    status = fields(runs, started(runs, "sh", "-c", f"umask; {STATUS}"))
    assert status["Uid"].split() == [str(ANN)] * 4
    assert status["Gid"].split() == [str(BOB)] * 4
    assert status["Groups"].split() == []
    assert status["NoNewPrivs"] == "1"
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")} == {0}
    assert status["Umask"] == "0022"


def test_no_descriptor_of_ours_comes_along(runs):
    run = started(runs, "sh", "-c", "ls /proc/$$/fd")
    runs.ended(run)
    assert sorted(text for _, text in runs.lines(run)) == ["0", "1", "2"]


READS_KEYS = """
import ctypes
libc = ctypes.CDLL(None)
found = libc.syscall({keyctl}, 10, ctypes.c_long(-3), b"user", b"of-the-worker", 0)
mine = libc.syscall({add_key}, b"user", b"mine", b"x", 1, ctypes.c_long(-3))
print("theirs" if found > 0 else "none", "own" if mine > 0 else "none of its own", flush=True)
"""


@pytest.mark.skipif(keyctl_number() is None, reason="the numbers of its calls are not known here")
def test_keys_that_the_kernel_keeps_for_the_worker_are_not_for_tasks(runs):
    """A session keyring is inherited, and whoever has it may read and change what is in it."""
    number = keyctl_number()
    add_key, libc = number - 2, ctypes.CDLL(None)
    if libc.syscall(number, JOIN_SESSION_KEYRING, None, 0, 0, 0) < 0:
        pytest.skip("this kernel keeps no keys")
    assert libc.syscall(add_key, b"user", b"of-the-worker", b"secret", 6, ctypes.c_long(-3)) > 0
    script = READS_KEYS.format(keyctl=number, add_key=add_key)
    run = started(runs, "/usr/bin/python3", "-c", script)
    assert (runs.ended(run).code, runs.lines(run)) == (0, [("stdout", "none own")])


MULTIPLIES = """
import os, time
made = 0
while made < 100:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError as error:
        print(error.strerror, flush=True)
        break
    made += 1
print("made", made, flush=True)
time.sleep(1000)
"""


def test_a_task_that_multiplies_without_end_leaves_others_their_places(runs):
    """Its limit is that of its account, so a task of that account finds none left; others start."""
    own, other = 1_000_000 + os.getpid(), 3_000_000 + os.getpid()

    def start(name, user, *argv):
        run = runs.dir(name)
        limited = process.RunAs(user, user, (), 20)
        process.prepare(run, argv, "/", {"PATH": "/usr/bin:/bin"}, run_as=limited)
        process.start(run)
        return run

    bomb = start("bomb", own, "/usr/bin/python3", "-c", MULTIPLIES)
    runs.wait_for_line(bomb, "made 19")
    assert ("stdout", "Resource temporarily unavailable") in runs.lines(bomb)
    assert runs.ended(start("other", other, "sh", "-c", "true & wait")).code == 0
    # Linux lets the one that reaches the limit start.
    start("last", own, "sleep", "1000")
    refused = runs.ended(start("same", own, "true"))
    assert refused.code == 127
    assert "as many processes as it may" in refused.message
    for run in (bomb, runs.dir("last")):
        process.kill(run)
        runs.ended(run)
    assert runs.ended(start("later", own, "true")).code == 0


def test_how_many_processes_an_account_may_have():
    assert max_processes(7) == 7
    assert max_processes(0) == 0
    assert 0 < max_processes(-1) <= int(Path("/proc/sys/kernel/pid_max").read_text()) // 4


def test_its_output_can_be_opened_by_name(runs):
    run = started(runs, "sh", "-c", "echo out > /dev/stdout; echo err > /dev/stderr")
    assert runs.ended(run).code == 0
    assert sorted(runs.lines(run)) == [("stderr", "err"), ("stdout", "out")]


def test_it_is_killed_with_all_that_came_of_it(runs):
    run = started(runs, "sh", "-c", "setsid sleep 1000 & echo up; sleep 1000")
    runs.wait_for_line(run, "up")
    process.kill(run)
    assert runs.ended(run).code == 137


def test_it_is_ended_when_its_shim_is_gone(runs):
    run = started(runs, "sleep", "1000")
    running = process._read_running(run)
    os.kill(running.shim.pid, 9)
    runs.eventually(lambda: process.state_of(run) == "lost", "the loss")
    process.end_lost_run(run, "gone")
    runs.eventually(lambda: not running.command.is_alive(), "the end of the command")


def test_a_working_directory_that_it_cannot_enter(runs, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    run = started(runs, "true", cwd=str(closed))
    assert runs.ended(run).message == f"cannot start '{closed}': Permission denied"


def test_it_sees_what_is_mounted_for_it_alone(runs, open_folder):
    own, at = open_folder / "own", open_folder / "at"
    own.mkdir()
    at.mkdir()
    (own / "file").write_text("mine")
    os.chown(own, ANN, BOB)
    run = started(runs, "sh", "-c", f"cat {at}/file; touch {at}/made", binds=[(str(own), str(at))])
    assert runs.ended(run).code == 0, runs.lines(run)
    assert [text for _, text in runs.lines(run)] == ["mine"]
    assert (own / "made").stat().st_uid == ANN
    assert list(at.iterdir()) == []


def test_a_mount_leads_nowhere_where_it_could_not_go(runs, open_folder):
    """A folder that is open, below one that is closed to the user: only the path keeps it out."""
    closed, at = open_folder / "closed", open_folder / "at"
    (closed / "open").mkdir(parents=True)
    closed.chmod(0o700)
    at.mkdir()
    run = started(runs, "ls", str(at), binds=[(str(closed / "open"), str(at))])
    run_exit = runs.ended(run)
    assert run_exit.code == 127
    assert "Permission denied" in run_exit.message


def test_the_shim_has_no_settings_of_the_platform(runs, monkeypatch):
    monkeypatch.setenv("STEADFAST_S3_SECRET_KEY", "secret")
    run = started(runs, "sleep", "1000")
    shim = process._read_running(run).shim.pid
    assert b"STEADFAST_" not in Path(f"/proc/{shim}/environ").read_bytes()
    spec = json.loads((run / "spec.json").read_text())
    assert spec["run_as"]["uid"] == ANN
