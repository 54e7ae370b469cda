"""Runs outlive their worker, start once, and are found again."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from worker import process

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]


def test_the_life_of_a_run(runs):
    run = runs.prepare("cat", "fifo")
    os.mkfifo(runs.folder / "fifo")
    assert process.find_runs(runs.folder / "runs") == {run: "prepared"}
    process.start(run)
    assert process.find_runs(runs.folder / "runs") == {run: "running"}
    assert process.read_exit(run) is None
    (runs.folder / "fifo").write_text("done\n")
    runs.ended(run)
    assert process.find_runs(runs.folder / "runs") == {run: "exited"}
    assert not process.send(run, signal.SIGTERM)


def test_no_runs(tmp_path):
    assert process.find_runs(tmp_path / "nowhere") == {}


def test_what_a_run_is_given_is_for_its_owner_only(runs):
    run = runs.prepare("true", DET_SESSION_TOKEN="secret")
    assert run.stat().st_mode & 0o777 == 0o700
    assert (run / "spec.json").stat().st_mode & 0o777 == 0o600


def test_started_by_many_it_runs_once(runs):
    run = runs.prepare("sh", "-c", "echo once; exec sleep 1000")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(process.start, [run] * 4))
    runs.wait_for_line(run, "once")
    process.start(run)
    process.kill(run)
    runs.ended(run)
    process.start(run)
    assert runs.lines(run) == [("stdout", "once")]


def test_a_run_that_was_never_laid_out(tmp_path):
    with pytest.raises(process.StartFailed, match="no shim for run"):
        process.start(tmp_path / "nowhere")


WORKER = """
import sys, time
from pathlib import Path
from worker import process
run = Path(sys.argv[1])
process.prepare(run, ["sh", "-c", "echo first; while ! test -e go; do sleep 0.02; done; echo last; exit 4"],
                Path(sys.argv[2]), {"PATH": "/usr/bin:/bin"})
process.start(run)
print("started", flush=True)
time.sleep(1000)
"""


def test_kill_9_of_the_worker_does_not_touch_the_run(runs):
    run = runs.dir()
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, run, runs.folder], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with worker:
        assert worker.stdout.readline() == "started\n"
        os.kill(worker.pid, signal.SIGKILL)
    assert process.find_runs(runs.folder / "runs") == {run: "running"}
    (runs.folder / "go").touch()
    assert runs.ended(run).code == 4
    assert runs.lines(run) == [("stdout", "first"), ("stdout", "last")]


def test_kill_of_the_workers_whole_group_does_not_either(runs):
    run = runs.dir()
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, run, runs.folder],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    with worker:
        assert worker.stdout.readline() == "started\n"
        os.killpg(worker.pid, signal.SIGKILL)
    assert process.state_of(run) == "running"


@pytest.mark.parametrize("script", ["exec sleep 1000", "setsid sleep 1000 & exec sleep 1000"])
def test_a_run_whose_shim_was_killed_is_ended(runs, eventually, script):
    run = runs.start("sh", "-c", script, DET_INFO_DIR=str(runs.dir()))
    running = process._read_running(run)
    os.kill(running.shim.pid, signal.SIGKILL)
    eventually(lambda: process.state_of(run) == "lost", "the loss")
    run_exit = process.end_lost_run(run, "the shim was killed")
    assert (run_exit.code, run_exit.signal, run_exit.message) == (137, 9, "the shim was killed")
    assert process.state_of(run) == "exited"
    eventually(lambda: process._orphaned_pids(run) == set(), "an empty host")
    assert process.end_lost_run(run, "again") == run_exit


def test_a_run_that_is_just_starting_is_never_lost(runs):
    run = runs.prepare("sh", "-c", "exec sleep 1000")
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(process.start, run)
        states = {process.state_of(run)}
        while not starting.done():
            states.add(process.state_of(run))
    assert process.state_of(run) == "running"
    assert states <= {"prepared", "running"}


def test_another_process_with_the_same_id_is_not_mistaken_for_it():
    me = process.ProcessIdentity(os.getpid(), 1)
    assert not me.is_alive()


def test_damaged_records_are_a_loss_not_a_crash(runs):
    run = runs.start("true")
    runs.ended(run)
    (run / "exit.json").write_text("")
    assert process.state_of(run) == "lost"
    assert process.end_lost_run(run, "damaged").code == 137
    assert process.state_of(run) == "exited"
