"""Scripts that want all of a host: processes, memory, disk. Others go on, and each is told why it ended.

All runs are below a control group of this test, which has limits of its own: whatever fails here, the host of
the tests stays usable.
"""

import os
import time
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for
from worker.control_groups import RunGroups

pytestmark = pytest.mark.timeout(1200)

SLOT_MIB = 512
PROCESSES = 256
DISK_MIB = 64
NAME = f"/steadfast-hostile-{os.getpid()}"
GUARD = {"pids.max": "1500", "memory.limit_in_bytes": str(3 << 30), "memory.max": str(3 << 30)}

FORK_BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
ESCAPING_BOMB = """
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
    except OSError:
        pass
"""
HOG = """
import os, time
hoard = []
while True:
    hoard.append(bytearray(os.urandom(1 << 20)) * 16)
"""
HOGS = """
import os, subprocess, sys
code = "hoard = []\\nwhile True: hoard.append(bytearray(os.urandom(1 << 20)))"
children = [subprocess.Popen([sys.executable, "-c", "import os\\n" + code]) for _ in range(8)]
sys.exit(max(child.wait() != 0 for child in children))
"""
SHARED_MEMORY = """
import os
file = open(f"/dev/shm/steadfast-hostile-{os.getpid()}", "wb")
os.unlink(file.name)
while True:
    file.write(os.urandom(1 << 20))
"""
FILLS = """
import os, time
for n in range(1000):
    with open(f"file{n}", "wb") as file:
        file.write(os.urandom(1 << 20))
    time.sleep(0.02)
time.sleep(1000)
"""
WELL = "import determined as det; print('well', flush=True)"


@pytest.fixture(scope="module")
def guard():
    """The groups below which all runs are; skips where none can be made."""
    groups = RunGroups("guard", below=NAME, slot_memory_mib=SLOT_MIB, max_processes=PROCESSES)
    if groups.missing:
        pytest.skip(f"no control groups can be made here: {groups.missing}")
    folders = {Path(group.folder).parent for group in groups.groups("any", 1)}
    for folder in folders:
        for name, value in GUARD.items():
            if (folder / name).exists():
                (folder / name).write_text(value)
    yield folders
    for folder in folders:
        folder.rmdir()


@pytest.fixture(scope="module")
def hostile(guard, tmp_path_factory):
    from tests.fixtures.gateways import running
    from tests.fixtures.local_cluster import LocalCluster

    settings = {
        "STEADFAST_WORKER_CGROUP": NAME,
        "STEADFAST_WORKER_SLOT_MEMORY_MIB": str(SLOT_MIB),
        "STEADFAST_WORKER_PROCESSES": str(PROCESSES),
        "STEADFAST_WORKER_DISK_MIB": str(DISK_MIB),
    }
    with running(LocalCluster(tmp_path_factory.mktemp("hostile"), slots=2, settings=settings)) as cluster:
        yield cluster


def processes(guard):
    """Everything that runs below the guard."""
    files = [path for folder in guard for path in folder.glob("*/cgroup.procs")]
    pids = set()
    for file in files:
        try:
            pids |= {int(pid) for pid in file.read_text().split()}
        except OSError:
            continue
    return pids


def submit(cluster, script, **config):
    return cluster.submit(script, max_restarts=0, **config)


def another_ends_well(cluster):
    other = submit(cluster, WELL)
    cluster.wait_for_end(other, 300)
    assert any("well" in line for line in cluster.logs(cluster.first_trial(other)))


@pytest.mark.parametrize("bomb", [FORK_BOMB, ESCAPING_BOMB], ids=["forks", "leaves its session"])
def test_a_fork_bomb_takes_no_more_than_its_processes_and_is_killed_whole(hostile, guard, bomb):
    workers = hostile.workers()
    experiment = submit(hostile, bomb)
    wait_for(lambda: len(processes(guard)) >= PROCESSES // 2, 300, "the bomb to fill its group")
    assert len(processes(guard)) <= PROCESSES
    another_ends_well(hostile)
    hostile.tell(experiment, "kill")
    hostile.wait_for_end(experiment, 300)
    wait_for(lambda: not processes(guard), 120, "the end of every process")
    assert hostile.workers() == workers


@pytest.mark.parametrize("hog", [HOG, HOGS, SHARED_MEMORY], ids=["one", "eight", "shared memory"])
def test_who_takes_all_memory_is_ended_and_told(hostile, hog):
    experiment = submit(hostile, hog)
    another_ends_well(hostile)
    assert hostile.wait_for_end(experiment, 600)["state"] == "STATE_ERROR"
    trial = hostile.first_trial(experiment)
    why = hostile.det("why", "trial", trial).stdout
    assert "the memory that it may use was all in use" in why
    assert f"limit: {SLOT_MIB} MiB" in why
    assert any("the memory that it may use was all in use" in line for line in hostile.logs(trial))


def test_who_fills_the_disk_is_ended_and_told(hostile):
    experiment = submit(hostile, FILLS)
    began = time.monotonic()
    assert hostile.wait_for_end(experiment, 600)["state"] == "STATE_ERROR"
    trial = hostile.first_trial(experiment)
    why = hostile.det("why", "trial", trial).stdout
    assert f"it may take {DISK_MIB} MiB of this worker's disk" in why, time.monotonic() - began
