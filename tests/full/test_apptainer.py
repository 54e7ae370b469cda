"""Tasks in containers of a real Apptainer, which runs them as processes of an ordinary user."""

import json
import os
import pwd
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.other_users import add_data, interpreter, needs_root, open_folder

USER = "nobody"
"""Apptainer takes no user that the host does not know, so an id of our own is not enough."""
pytestmark = [
    pytest.mark.timeout(1800),
    needs_root,
    pytest.mark.skipif(shutil.which("apptainer") is None, reason="apptainer is not installed"),
]
TRAIN = """
import os, pathlib, sys, time
import determined as det

print("in a container:", "APPTAINER_CONTAINER" in os.environ, os.getuid(), os.getcwd())
print("lines:", repr(os.environ["TWO_LINES"]), os.environ["A_TOKEN"][:4], os.environ.get("OF_THE_WORKER"))
print("info:", pathlib.Path("/run/determined/info").is_dir(), pathlib.Path("train.py").exists())
print("rights:", [l for l in open("/proc/self/status") if l.startswith("NoNewPrivs")][0].split()[1])
try:
    pathlib.Path("/in/data").write_text("changed")
except OSError as error:
    print("read only:", error.strerror)
with det.core.init() as core:
    print("begins", det.get_cluster_info().latest_checkpoint, flush=True)
    for op in core.searcher.operations():
        while not pathlib.Path("/in/open").exists():
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": 1}) as (path, _):
                    (path / "weights").write_bytes(b"w")
                sys.exit()
            time.sleep(0.1)
        core.train.report_validation_metrics(op.length, {"loss": 0.5})
        op.report_completed(0.5)
"""
CONFIG = """
name: in-apptainer
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 4}
environment:
  image: IMAGE
  environment_variables: ["TWO_LINES=one\\ntwo 'three'", "A_TOKEN=hush-nobody-may-see-this"]
bind_mounts: [{host_path: DATA, container_path: /in, read_only: true}]
max_restarts: 0
"""
MOUNT_POINTS = ("usr", "etc", "proc", "sys", "dev", "tmp", "run", "var/tmp", "root", "home")
LINKS = ("bin", "sbin", "lib", "lib64")


@pytest.fixture(scope="module")
def folder():
    with open_folder("apptainer-") as made:
        add_data(made, USER)
        yield made


@pytest.fixture(scope="module")
def image(folder):
    """An image as a folder, whose programs are the host's: no registry and no build is needed."""
    made = folder / "image"
    for name in MOUNT_POINTS:
        (made / name).mkdir(parents=True)
    for name in LINKS:
        (made / name).symlink_to(f"usr/{name}")
    for name in ("passwd", "group", "localtime", "hosts", "resolv.conf"):
        (made / "etc" / name).touch()
    variables = made / ".singularity.d" / "env" / "90-environment.sh"
    variables.parent.mkdir(parents=True)
    variables.write_text(f'export PATH="{Path(interpreter(folder)).parent}:$PATH"\n')
    return made


@pytest.fixture(scope="module")
def cluster(folder, image, tmp_path_factory):
    # What the image's Python consists of: the host's, the packages here, and the parts of this checkout.
    own = {"/usr", str(folder / "python"), sys.prefix, str(Path(__file__).parents[2])}
    binds = " ".join(f"--bind {path}:{path}:ro" for path in sorted(own) if Path(path).exists())
    made = LocalCluster(
        tmp_path_factory.mktemp("cluster"),
        slots=2,
        settings={
            "STEADFAST_WORKER_LAUNCHER": "apptainer",
            "STEADFAST_WORKER_RUN_AS": USER,
            "STEADFAST_WORKER_TASKS": str(folder / "worker"),
            "STEADFAST_WORKER_MOUNT_ROOTS": str(folder / "data"),
            "STEADFAST_WORKER_CONTAINER_OPTIONS": binds,
            "OF_THE_WORKER": "1",
        },
        storage=str(folder / "checkpoints"),
    )
    yield made.up()
    made.down()


@pytest.fixture
def running(cluster, folder, image, tmp_path):
    """An experiment whose script waits for the gate, its trial, and how to open the gate."""
    id = submit(cluster, folder, image, tmp_path)
    trial = cluster.first_trial(id)
    wait_for(lambda: begun(cluster, trial) == ["None"], 180, "the script to begin")
    gate = folder / "data" / "open"
    yield id, trial, gate.touch
    gate.unlink(missing_ok=True)


def submit(cluster, folder, image, tmp_path, entrypoint="python3 train.py"):
    (tmp_path / "train.py").write_text(TRAIN)
    text = CONFIG.replace("DATA", str(folder / "data")).replace("IMAGE", str(image))
    (tmp_path / "config.yaml").write_text(text.replace("python3 train.py", entrypoint))
    return cluster.create("config.yaml", tmp_path)


def begun(cluster, trial):
    return [line.rpartition("begins ")[2] for line in cluster.logs(trial) if "begins " in line]


def test_a_trial_is_paused_and_goes_on_from_its_checkpoint(cluster, running):
    id, trial, open_gate = running
    cluster.tell(id, "pause")
    wait_for(lambda: not cluster.run_processes(), 120, "the container to be gone")
    cluster.tell(id, "activate")
    wait_for(lambda: len(begun(cluster, trial)) == 2, 180, "the second run")
    open_gate()
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert begun(cluster, trial)[1] != "None"
    text = "\n".join(cluster.logs(trial))
    assert f"in a container: True {pwd.getpwnam(USER).pw_uid} " in text
    for expected in ("info: True True", "rights: 1", "read only: Read-only"):
        assert expected in text
    assert """lines: "one\\ntwo 'three'" hush None""" in text
    (checkpoint,) = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
    assert checkpoint["resources"]["weights"] == "1"


def test_a_killed_worker_finds_the_container_again(cluster, running):
    id, trial, open_gate = running
    (worker,) = cluster.workers()
    cluster.kill(worker)
    open_gate()
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert (begun(cluster, trial), cluster.trials(id)[0]["restarts"]) == (["None"], 0)


def test_killed_by_a_person_nothing_is_left(cluster, running):
    id, _, _ = running
    cluster.tell(id, "kill")
    assert cluster.wait_for_end(id)["state"] == "STATE_CANCELED"
    wait_for(lambda: not cluster.run_processes(), 60, "the container to be gone")


def test_with_its_shim_the_container_ends_too(cluster, running):
    id, _, _ = running
    files = (cluster.home.path / "workers").glob("*/runs/*/running.json")
    (record,) = (json.loads(file.read_text()) for file in files if not (file.parent / "exit.json").exists())
    os.kill(record["shim"]["pid"], signal.SIGKILL)
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    wait_for(lambda: not cluster.run_processes(), 60, "the container to be gone")


@pytest.mark.parametrize(
    ("entrypoint", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("no-such-program", 127)]
)
def test_exit_codes_are_those_of_the_command(cluster, folder, image, tmp_path, entrypoint, code):
    id = submit(cluster, folder, image, tmp_path, f"sh -c '{entrypoint}'")
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    (trial,) = cluster.trials(id)
    assert f"exit code {code}" in cluster.det("trial", "describe", trial["id"]).stdout


def test_an_image_that_is_not_there_is_named(cluster, folder, tmp_path):
    id = submit(cluster, folder, "/no/such/image.sif", tmp_path)
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    (trial,) = cluster.trials(id)
    assert "/no/such/image.sif" in "\n".join(cluster.logs(trial["id"]))
