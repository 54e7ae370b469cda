"""A cluster of a user who is not root, whose tasks run in that user's own Podman."""

import os
from pathlib import Path

import pytest

from det_contracts.expconf.environment import DEFAULT_IMAGES
from services.kit import broker
from tests.fixtures import watchdog
from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.other_users import interpreter, open_folder
from tests.fixtures.rootless_podman import RootlessPodman, unavailable
from tests.fixtures.stand_ins import PYTHON, provide

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.expected_log("tasks.not_apart", "a worker without root says that tasks run as its user"),
    pytest.mark.skipif(bool(why := unavailable()), reason=why),
]
TRAIN = """
import os, pathlib, time
import determined as det

print("in a container:", pathlib.Path("/run/.containerenv").exists(), os.getuid())
with det.core.init() as core:
    print("begins", det.get_cluster_info().latest_checkpoint, flush=True)
    for op in core.searcher.operations():
        while not pathlib.Path("/gate/open").exists():
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": 1}) as (path, _):
                    (path / "weights").write_bytes(b"w")
                raise SystemExit
            time.sleep(0.1)
        core.train.report_validation_metrics(op.length, {"loss": 0.5})
        op.report_completed(0.5)
"""
CONFIG = """
name: rootless
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 4}
bind_mounts: [{host_path: DATA, container_path: /gate}]
max_restarts: 0
"""


@pytest.fixture(scope="module")
def folder():
    with open_folder("rootless-") as made:
        yield made


@pytest.fixture(scope="module")
def podman(folder):
    made = RootlessPodman(folder / "podman")
    made.start()
    try:
        provide(made, folder / "stand-ins", PYTHON)
        made.build(DEFAULT_IMAGES["cpu"], ROOT, "--file", str(ROOT / "deploy" / "docker" / "task.Dockerfile"))
        yield made
    finally:
        made.stop()


class Rootless(LocalCluster):
    """A cluster that the account has started itself."""

    def __init__(self, podman: RootlessPodman, folder: Path) -> None:
        self.podman, self.python = podman, interpreter(folder)
        home = folder / "home"
        super().__init__(home)
        (folder / "data").mkdir()
        for place in (folder / "data", home, *home.rglob("*")):
            os.chown(place, podman.uid, podman.gid)
        # Its interpreter may be another one than this, which has the broker beside it.
        broker_bin = Path(broker.executable()).parent
        podman.environment |= watchdog.settings() | {
            "PATH": f"{broker_bin}:{os.environ.get('PATH', os.defpath)}",
            "STEADFAST_HOME": str(home),
            "STEADFAST_WORKER_LAUNCHER": "podman",
            "STEADFAST_WORKER_MOUNT_ROOTS": str(folder / "data"),
        }

    def deploy(self, *words: str) -> None:
        self.podman.run(self.python, "-m", "determined.cli", "deploy", "local", *words, cwd="/")

    def up(self):
        named = ("--cluster-name", "test", "--master-port", str(self.plan.port))
        self.deploy("cluster-up", *named, "--no-gpu", "--slots", "2")
        return self

    def down(self) -> None:
        self.deploy("cluster-down", "--cluster-name", "test")
        self._session.close()
        self._door.close()


@pytest.fixture(scope="module")
def cluster(podman, folder):
    made = Rootless(podman, folder)
    yield made.up()
    made.down()
    assert podman.containers(all=True) == []


@pytest.fixture
def running(cluster, folder, tmp_path):
    """An experiment whose script waits for the gate, its trial, and how to open the gate."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "config.yaml").write_text(CONFIG.replace("DATA", str(folder / "data")))
    id = cluster.create("config.yaml", tmp_path)
    trial = cluster.first_trial(id)
    wait_for(lambda: begun(cluster, trial) == ["None"], 120, "the script to begin")
    gate = folder / "data" / "open"
    yield id, trial, gate.touch
    gate.unlink(missing_ok=True)


def begun(cluster, trial):
    return [line.rpartition("begins ")[2] for line in cluster.logs(trial) if "begins " in line]


def test_a_trial_is_paused_and_goes_on_as_the_workers_own_user(cluster, podman, running):
    id, trial, open_gate = running
    cluster.tell(id, "pause")
    wait_for(lambda: podman.containers(all=True) == [], 120, "the container to be gone")
    cluster.tell(id, "activate")
    wait_for(lambda: len(begun(cluster, trial)) == 2, 120, "the second run")
    open_gate()
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert begun(cluster, trial)[1] != "None"
    assert any(f"in a container: True {podman.uid}" in line for line in cluster.logs(trial))
    (checkpoint,) = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
    assert checkpoint["resources"]["weights"] == "1"


def test_a_killed_worker_finds_the_container_again(cluster, podman, running):
    id, trial, open_gate = running
    (before,) = podman.containers()
    (worker,) = cluster.workers()
    cluster.kill(worker)
    open_gate()
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert (begun(cluster, trial), cluster.trials(id)[0]["restarts"]) == (["None"], 0)
    assert before not in podman.containers(all=True)


def test_killed_by_a_person_nothing_is_left(cluster, podman, running):
    id, _, _ = running
    cluster.tell(id, "kill")
    assert cluster.wait_for_end(id)["state"] == "STATE_CANCELED"
    wait_for(lambda: podman.containers(all=True) == [], 60, "the container to be gone")
