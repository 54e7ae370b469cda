"""`pid_server` and `pid_client` with real processes (launchers spec, section 8)."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from determined.exec import _pids

SERVER = [sys.executable, "-m", "determined.exec.pid_server"]
CLIENT = [sys.executable, "-m", "determined.exec.pid_client"]


@pytest.fixture
def address():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield f"{folder}/s"


def serve(address, workers, *command, options=(), patch=""):
    """Run a server; `command` may name the client as `client`."""
    env = os.environ | {"CLIENT": " ".join([*CLIENT, address, "--"])}
    program = [*SERVER, *options, address, str(workers), "--", *command]
    if patch:
        program[1:3] = ["-c", f"import sys, determined.exec.pid_server as s; {patch}; sys.exit(s.main())"]
    return subprocess.run(program, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_all_workers_end_well(address):
    done = serve(address, 2, "sh", "-c", "$CLIENT true & $CLIENT sh -c 'sleep 0.2' & wait")
    assert done.returncode == 0, done.stderr
    assert not Path(address).exists()


def test_a_worker_that_is_done_before_another_has_come_is_no_failure(address):
    assert serve(address, 2, "sh", "-c", "$CLIENT true; $CLIENT true").returncode == 0


def test_the_command_ends_before_its_workers(address):
    assert serve(address, 1, "true").returncode == 77
    assert serve(address, 1, "sh", "-c", "exit 4").returncode == 4


@pytest.mark.parametrize(("trap", "code"), [("exit 0", 78), ("exit 9", 9)])
def test_a_worker_fails_and_the_command_is_signalled(address, trap, code):
    script = f"trap '{trap}' TERM; $CLIENT sh -c 'exit 3'; while :; do sleep 0.05; done"
    done = serve(address, 1, "sh", "-c", script, options=["--grace-period", "0.1"])
    assert done.returncode == code, done.stderr


def test_a_worker_fails_and_the_command_is_left_alone(address):
    done = serve(address, 1, "sh", "-c", "$CLIENT false; exit 0", options=["--on-fail", "WAIT"])
    assert done.returncode == 79


def test_a_command_that_does_not_listen_is_killed(address):
    script = "trap '' TERM; $CLIENT false; while :; do sleep 0.05; done"
    done = serve(
        address, 1, "sh", "-c", script, options=["--grace-period", "0.1"], patch="s.KILL_AFTER_S = 0.2"
    )
    assert done.returncode == 137


def test_a_killed_client_is_a_failed_worker(address):
    script = "trap 'exit 0' TERM; $CLIENT sh -c 'kill -9 $PPID'; while :; do sleep 0.05; done"
    assert serve(address, 1, "sh", "-c", script, options=["--grace-period", "0"]).returncode == 78


WRAPPED = f"$CLIENT {sys.executable} -m determined.launch.wrap_rank"


@pytest.mark.parametrize(
    ("end", "last"), [("exit 3", "rank 1 exited with code 3"), ("kill -9 $$", "rank 1 was ended by SIGKILL")]
)
def test_the_rank_that_failed_first_is_named(address, end, last):
    other = f"{WRAPPED} 0 sh -c 'echo up; exec sleep 600'"
    script = f"{other} | {{ read up; {WRAPPED} 1 sh -c '{end}'; exec sleep 600; }}"
    done = serve(address, 2, "sh", "-c", script, options=["--grace-period", "0", "--signal-children"])
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1] == last
    assert list(Path(address).parent.iterdir()) == []


def test_who_ended_an_earlier_time_is_not_named(address):
    Path(f"{address}.ends").write_text("1 5 9\n")
    assert "rank" not in serve(address, 1, "sh", "-c", "$CLIENT false", options=["--on-fail", "WAIT"]).stderr


def test_on_exit_ends_the_command(address):
    script = "trap 'exit 6' TERM; $CLIENT true; while :; do sleep 0.05; done"
    options = ["--grace-period", "0", "--on-exit", "SIGTERM"]
    assert serve(address, 1, "sh", "-c", script, options=options).returncode == 6


def test_a_command_that_is_slow_to_see_the_success_of_its_workers_has_not_failed(address):
    script = "$CLIENT true; while :; do sleep 0.05; done"
    options = ["--grace-period", "0", "--on-exit", "SIGTERM"]
    assert serve(address, 1, "sh", "-c", script, options=options).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-address", "1", "true"], "'no-address' is not an address"),
        (["--on-fail", "SIGNOTHING", "/tmp/x", "1", "true"], "'SIGNOTHING' is not a signal"),
    ],
)
def test_what_is_refused(arguments, message):
    done = subprocess.run([*SERVER, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr


def test_a_client_without_a_server(address):
    done = subprocess.run([*CLIENT, address, "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no pid_server at" in done.stderr


def test_addresses_and_signals():
    assert _pids._place("/a/b")[1] == "/a/b"
    assert _pids._place("host:12")[1] == ("host", 12)
    assert _pids._place("12")[1] == ("127.0.0.1", 12)
    assert _pids.signal_named("WAIT") is None
    assert _pids.signal_named("SIGINT") is signal.SIGINT


def test_what_runs():
    assert _pids.is_running(os.getpid())
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in _pids.descendants(os.getpid())
        child.send_signal(signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        assert not _pids.is_running(child.pid)
        child.kill()
    assert not _pids.is_running(child.pid)
