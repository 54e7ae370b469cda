"""Workers as processes, with other programs in their place: started, found again, ended, cleared away."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from services.kit import process_records
from services.provisioner.engines.process import ProcessEngine, ProcessSettings
from services.provisioner.engines.protocol import EngineRefused
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.live
WAITS = "import sys, time; print('here', flush=True); time.sleep(600)"
LEAVES_A_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '''{WAITS}''']); {WAITS}"
HOLDS_ITS_LOCK = f"""
import os, pathlib
home = pathlib.Path(os.environ['STEADFAST_WORKER_HOME'])
home.mkdir()
(home / 'lock').write_text(str(os.getpid()))
{WAITS}
"""


@pytest.fixture
def make(tmp_path):
    made = []

    def engine(program=WAITS):
        settings = ProcessSettings(command=(sys.executable, "-c", program), environment={"X": "1"})
        made.append(ProcessEngine("gpu", 2, tmp_path, settings))
        return made[-1]

    yield engine
    for pid in process_records.leftover_pids(tmp_path):
        os.kill(pid, signal.SIGKILL)
    for child in [child for process_engine in made for child in process_engine._children]:
        child.wait()


def list_workers(engine):
    return {worker.worker_id: worker for worker in asyncio.run(engine.list_workers())}


def until(engine, phase):
    wait_for(lambda: list_workers(engine)["gpu-1"].phase == phase, 60, f"gpu-1 to be {phase}")
    return list_workers(engine)["gpu-1"]


def test_a_worker_is_started_with_its_id_and_found_by_another_provisioner(make, tmp_path):
    engine = make()
    assert list_workers(engine) == {}
    detail = asyncio.run(engine.start("gpu-1"))
    worker = list_workers(make())["gpu-1"]
    assert (worker.phase, worker.detail) == ("running", detail)
    environment = Path(f"/proc/{worker.handle}/environ").read_text().split("\0")
    for wanted in (
        "STEADFAST_WORKER_ID=gpu-1",
        "STEADFAST_WORKER_POOL=gpu",
        "STEADFAST_WORKER_SLOTS=2",
        "X=1",
    ):
        assert wanted in environment
    asyncio.run(make().stop(worker))
    until(engine, "over")
    asyncio.run(engine.forget(worker))
    assert list_workers(engine) == {}
    assert not (tmp_path / "gpu-1").exists()


def test_the_last_output_of_a_worker_is_reported(make):
    engine = make("print('first'); print('STEADFAST_NATS_URL makes no sense')")
    asyncio.run(engine.start("gpu-1"))
    assert until(engine, "over").detail.endswith("has ended: STEADFAST_NATS_URL makes no sense")


def test_a_worker_of_which_nothing_was_noted_is_found_by_its_lock(make, tmp_path):
    engine = make(HOLDS_ITS_LOCK)
    asyncio.run(engine.start("gpu-1"))
    pid = process_records.running_pid(tmp_path / "gpu-1")
    wait_for(lambda: (tmp_path / "gpu-1" / "home" / "lock").exists(), 60, "the lock")
    (tmp_path / "gpu-1" / process_records.FILE).unlink()
    wait_for(
        lambda: process_records.running_pid(tmp_path / "gpu-1") == pid,
        20,
        "the holder of the lock to be found",
    )
    assert list_workers(engine)["gpu-1"].phase == "running"


def test_a_worker_that_was_never_recorded_is_cleared_away_once_it_has_ended(make, tmp_path):
    """Its provisioner was killed between starting and recording it."""
    engine = make()
    asyncio.run(engine.start("gpu-1"))
    pid = process_records.running_pid(tmp_path / "gpu-1")
    (tmp_path / "gpu-1" / process_records.FILE).unlink()
    assert (list_workers(engine)["gpu-1"].phase, list_workers(engine)["gpu-1"].handle) == (
        "running",
        str(pid),
    )
    os.kill(pid, signal.SIGKILL)
    worker = until(engine, "over")
    assert worker.detail.startswith("it has ended: ")
    asyncio.run(engine.forget(worker))
    assert not (tmp_path / "gpu-1").exists()


def test_an_instance_whose_lock_holder_ended_is_over_though_its_scripts_run(make, tmp_path):
    engine = make(LEAVES_A_CHILD)
    asyncio.run(engine.start("gpu-1"))
    wait_for(lambda: len(process_records.leftover_pids(tmp_path)) == 2, 60, "the worker's child")
    pid = process_records.running_pid(tmp_path / "gpu-1")
    (tmp_path / "gpu-1" / "home").mkdir(exist_ok=True)
    (tmp_path / "gpu-1" / "home" / process_records.LOCK).write_text(str(pid))
    (tmp_path / "gpu-1" / process_records.FILE).unlink()
    os.kill(pid, signal.SIGKILL)
    worker = until(engine, "over")
    assert process_records.leftover_pids(tmp_path)
    asyncio.run(engine.forget(worker))
    wait_for(lambda: not process_records.leftover_pids(tmp_path), 60, "all of it to be gone")


def test_a_folder_in_which_nothing_was_started_is_cleared_away(make, tmp_path):
    engine = make()
    (tmp_path / "gpu-1").mkdir()
    asyncio.run(engine.forget(until(engine, "over")))
    assert list_workers(engine) == {}


def test_another_process_of_the_same_number_is_not_the_worker(make, tmp_path):
    engine = make()
    asyncio.run(engine.start("gpu-1"))
    process_records.record(tmp_path / "gpu-1", os.getpid())
    text = (tmp_path / "gpu-1" / process_records.FILE).read_text()
    (tmp_path / "gpu-1" / process_records.FILE).write_text(text.replace('"began":"', '"began":"9'))
    assert list_workers(engine)["gpu-1"].phase == "over"


def test_what_a_killed_worker_leaves_behind_is_ended(make, tmp_path):
    engine = make(LEAVES_A_CHILD)
    asyncio.run(engine.start("gpu-1"))
    wait_for(lambda: len(process_records.leftover_pids(tmp_path)) == 2, 60, "the worker's child")
    os.kill(process_records.running_pid(tmp_path / "gpu-1"), signal.SIGKILL)
    worker = until(engine, "over")
    assert process_records.leftover_pids(tmp_path)
    asyncio.run(engine.forget(worker))
    wait_for(lambda: not process_records.leftover_pids(tmp_path), 60, "all of it to be gone")


def test_what_cannot_be_started_is_refused(tmp_path):
    engine = ProcessEngine("gpu", 1, tmp_path, ProcessSettings(command=("/no/such/program",)))
    with pytest.raises(EngineRefused, match="/no/such/program"):
        asyncio.run(engine.start("gpu-1"))
