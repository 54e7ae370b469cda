"""Tasks in containers of a real Docker and Podman: the same as without one, whoever is killed."""

import json
import os
import signal
from pathlib import Path

import pytest

from det_contracts.expconf.environment import DEFAULT_IMAGES
from tests.fixtures import docker_daemon, other_users, podman
from tests.fixtures.docker_daemon import DockerDaemon
from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.other_users import NOBODY
from tests.fixtures.podman import Podman
from tests.fixtures.stand_ins import PYTHON, provide
from worker.launchers.containers import ID_FILE
from worker.utilisation.sampling import processes_of

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(1800)
ENGINES = {"docker": (DockerDaemon, docker_daemon.unavailable), "podman": (Podman, podman.unavailable)}
IMAGE = "mine/train:1"
SECRET = "hush-nobody-may-see-this"
TRAIN = """
import os, pathlib, subprocess, sys, time
import determined as det

marks = [mark for mark in ("/.dockerenv", "/run/.containerenv") if pathlib.Path(mark).exists()]
print("in a container:", len(marks) > 0, os.getuid(), os.getcwd())
print("marked:", pathlib.Path("/mark").read_text())
print("hooked:", os.environ["FROM_HOOK"])
print("lines:", repr(os.environ["TWO_LINES"]), len(os.environ["LONG"]), os.environ["A_TOKEN"][:4])
print("shm:", os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize)
print("data:", pathlib.Path("/in/data").read_text())
try:
    pathlib.Path("/in/data").write_text("changed")
except OSError as error:
    print("read only:", error.strerror)
print("rights:", [l for l in open("/proc/self/status") if l.startswith("NoNewPrivs")][0].split()[1])
with det.core.init() as core:
    print("latest:", det.get_cluster_info().latest_checkpoint)
    for op in core.searcher.operations():
        core.train.report_validation_metrics(op.length, {"loss": 0.25})
        with core.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            (path / "weights").write_bytes(b"w" * 1000)
        op.report_completed(0.25)
"""
CONFIG = """
name: in-containers
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_length: 4, max_trials: 2}
environment:
  image: IMAGE
  environment_variables: ["TWO_LINES=one\\ntwo 'three'", "LONG=LONGEST", "A_TOKEN=SECRET"]
resources: {shm_size: 96m}
bind_mounts: [{host_path: DATA, container_path: /in, read_only: true}]
max_restarts: 0
"""
SLOW = """
import os, pathlib, signal, sys, time
import determined as det
with det.core.init() as core:
    begun = det.get_cluster_info().latest_checkpoint
    print("begins", begun, flush=True)
    for op in core.searcher.operations():
        step = 0
        while step < op.length:
            step += 1
            core.train.report_training_metrics(step, {"loss": 1.0})
            time.sleep(0.1)
            if pathlib.Path(os.environ["GATE"], "open").exists():
                break
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "weights").write_bytes(b"w")
                sys.exit()
        core.train.report_validation_metrics(op.length, {"loss": 0.5})
        op.report_completed(0.5)
"""
SLOW_CONFIG = """
name: slow
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 100000}
environment: {image: IMAGE, environment_variables: [GATE=/gate]}
bind_mounts: [{host_path: DATA, container_path: /gate}]
max_restarts: 0
"""


@pytest.fixture(scope="module")
def open_folder():
    with other_users.open_folder("tasks-") as made:
        other_users.add_data(made, NOBODY)
        yield made


@pytest.fixture(scope="module", params=ENGINES)
def daemon(request, open_folder):
    engine, unavailable = ENGINES[request.param]
    if why := unavailable():
        pytest.skip(why)
    made = engine(open_folder / request.param)
    made.start()
    try:
        provide(made, open_folder / "stand-ins" / request.param, PYTHON)
        recipe = ROOT / "deploy" / "docker" / "task.Dockerfile"
        made.build(DEFAULT_IMAGES["cpu"], ROOT, "--file", str(recipe))
        (open_folder / "Dockerfile").write_text(
            f'FROM {DEFAULT_IMAGES["cpu"]}\nRUN echo mine > /mark\nENTRYPOINT ["false"]\n'
        )
        made.build(IMAGE, open_folder, "--file", str(open_folder / "Dockerfile"))
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def cluster(daemon, open_folder, tmp_path_factory):
    settings = {
        "STEADFAST_WORKER_LAUNCHER": daemon.name,
        "STEADFAST_WORKER_RUN_AS": f"{NOBODY}:{NOBODY}",
        "STEADFAST_WORKER_TASKS": str(open_folder / "worker"),
        "STEADFAST_WORKER_MOUNT_ROOTS": str(open_folder / "data"),
        "STEADFAST_WORKER_SAMPLE_S": "1",
    }
    made = LocalCluster(
        tmp_path_factory.mktemp("cluster"),
        slots=2,
        settings=settings | daemon.settings,
        storage=str(open_folder / "checkpoints"),
    )
    yield made.up()
    made.down()
    assert daemon.containers(all=True) == []


@pytest.fixture
def data(open_folder):
    yield open_folder / "data"
    (open_folder / "data" / "open").unlink(missing_ok=True)


def submit(cluster, folder, script, config, data, **files):
    folder.mkdir()
    texts = {"train.py": script, "config.yaml": config} | files
    for name, text in texts.items():
        filled = text.replace("IMAGE", IMAGE).replace("DATA", str(data)).replace("SECRET", SECRET)
        (folder / name).write_text(filled.replace("LONGEST", "x" * 100_000))
    return cluster.create("config.yaml", folder)


def begun(cluster, trial):
    """With what the script of a trial has begun each time, as far as its log has come."""
    lines = cluster.det("trial", "logs", trial).stdout.splitlines()
    return [line.rpartition("begins ")[2] for line in lines if "begins " in line]


def waits_for_gate(cluster, tmp_path, data):
    id = submit(cluster, tmp_path / "slow", SLOW, SLOW_CONFIG, data)
    trial = cluster.first_trial(id)
    wait_for(lambda: len(begun(cluster, trial)) == 1, 120, "the script to begin")
    return id, trial


def test_a_search_in_containers(cluster, daemon, tmp_path, data):
    hook = {"startup-hook.sh": "export FROM_HOOK=hooked\n"}
    id = submit(cluster, tmp_path / "model", TRAIN, CONFIG, data, **hook)
    inspections = []

    def over():
        inspections.extend(daemon.docker("inspect", name, check=False).stdout for name in daemon.containers())
        return cluster.experiment(id)["state"] in ("STATE_COMPLETED", "STATE_ERROR")

    wait_for(over, 300, "the experiment to end")
    ended = cluster.wait_for_end(id)
    first = cluster.trials(id)[0]["id"]
    lines = [line.partition("|| ")[2] or line for line in cluster.logs(first)]
    assert ended["state"] == "STATE_COMPLETED", lines
    text = "\n".join(lines)
    assert f"in a container: True {NOBODY} " in text
    for expected in (
        "marked: mine",
        "hooked: hooked",
        "data: of the host",
        "read only: Read-only",
        "rights: 1",
    ):
        assert expected in text
    assert """lines: "one\\ntwo 'three'" 100000 hush""" in text
    assert f"shm: {96 << 20}" in text
    checkpoints = cluster.get(f"experiments/{id}/checkpoints")["checkpoints"]
    assert len(checkpoints) == 2
    assert all(checkpoint["resources"]["weights"] == "1000" for checkpoint in checkpoints)
    # Whoever may look at a container sees no secret of its task.
    assert any("steadfast.allocation" in inspection for inspection in inspections)
    assert not any(SECRET in inspection for inspection in inspections)
    assert daemon.containers(all=True) == []


def test_paused_and_activated_it_goes_on_from_its_checkpoint(cluster, daemon, tmp_path, data):
    id, trial = waits_for_gate(cluster, tmp_path, data)
    cluster.tell(id, "pause")
    wait_for(lambda: daemon.containers(all=True) == [], 120, "the container to be gone")
    cluster.tell(id, "activate")
    wait_for(lambda: len(begun(cluster, trial)) == 2, 120, "the second run")
    assert begun(cluster, trial)[0] == "None"
    assert begun(cluster, trial)[1] != "None"
    (data / "open").touch()
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert cluster.trials(id)[0]["restarts"] == 0


def test_a_killed_worker_finds_the_container_again(cluster, daemon, tmp_path, data):
    id, trial = waits_for_gate(cluster, tmp_path, data)
    (name,) = daemon.containers()
    before = daemon.inspect(name)["Id"]
    assert daemon.inspect(name)["State"]["Pid"] in sampled(cluster)
    (worker,) = cluster.workers()
    cluster.kill(worker)
    wait_for(lambda: len(cluster.get("agents")["agents"]) == 1, 60, "the worker")
    (data / "open").touch()
    assert daemon.inspect(name)["Id"] == before
    assert cluster.wait_for_end(id)["state"] == "STATE_COMPLETED"
    assert len(begun(cluster, trial)) == 1
    assert cluster.trials(id)[0]["restarts"] == 0


def test_killed_by_a_person_nothing_is_left(cluster, daemon, tmp_path, data):
    id, _ = waits_for_gate(cluster, tmp_path, data)
    cluster.tell(id, "kill")
    assert cluster.wait_for_end(id)["state"] == "STATE_CANCELED"
    wait_for(lambda: daemon.containers(all=True) == [], 60, "the container to be gone")


def shims(cluster):
    """The processes of what runs: of each its shim, and the engine's program below it."""
    running = (cluster.home.path / "workers").glob("*/runs/*/running.json")
    return [json.loads(file.read_text()) for file in running if not (file.parent / "exit.json").exists()]


def sampled(cluster):
    """The processes whose use of the host is reported."""
    (id_file,) = (cluster.home.path / "workers").glob(f"*/runs/*/{ID_FILE}")
    (running,) = shims(cluster)
    return processes_of(running["shim"]["pid"], running["command"]["pid"], id_file)


def test_with_its_shim_the_container_ends_too(cluster, daemon, tmp_path, data):
    id, _ = waits_for_gate(cluster, tmp_path, data)
    (running,) = shims(cluster)
    os.kill(running["shim"]["pid"], signal.SIGKILL)
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    assert daemon.containers(all=True) == []


def test_with_the_engines_program_the_container_ends_too(cluster, daemon, tmp_path, data):
    id, _ = waits_for_gate(cluster, tmp_path, data)
    (running,) = shims(cluster)
    os.kill(running["command"]["pid"], signal.SIGKILL)
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    assert daemon.containers(all=True) == []


@pytest.mark.parametrize(
    ("entrypoint", "code"),
    [("exit 7", 7), ("kill -9 $$", 137), ("no-such-program", 127), ("kill -TERM $$", 143)],
)
def test_exit_codes_are_those_of_the_command(cluster, tmp_path, data, entrypoint, code):
    config = CONFIG.replace("python3 train.py", f"sh -c '{entrypoint}'").replace(
        "max_trials: 2", "max_trials: 1"
    )
    id = submit(cluster, tmp_path / "model", "", config, data)
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    (trial,) = cluster.trials(id)
    text = "\n".join(cluster.logs(trial["id"]))
    why = cluster.det("trial", "describe", trial["id"]).stdout
    assert str(code) in why + text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (f"image: {IMAGE}", "image: 127.0.0.1:9/no/such:1", "image 127.0.0.1:9/no/such:1 cannot be pulled"),
        (f"image: {IMAGE}", "image: --privileged", "not a valid image name"),
        ("host_path: DATA", "host_path: /etc", "outside of what tasks of this worker may mount"),
    ],
)
def test_what_a_container_does_not_get_is_reported(cluster, tmp_path, data, old, new, expected):
    config = CONFIG.replace("IMAGE", IMAGE).replace("max_trials: 2", "max_trials: 1").replace(old, new)
    id = submit(cluster, tmp_path / "model", "", config, data)
    assert cluster.wait_for_end(id)["state"] == "STATE_ERROR"
    assert expected in "\n".join(cluster.logs(cluster.trials(id)[0]["id"]))


def test_what_is_left_of_runs_that_nobody_knows_is_removed(cluster, daemon):
    (worker,) = cluster.workers()
    instance = json.loads((cluster.home.path / "workers" / worker / "identity.json").read_text())["instance"]
    label = f"steadfast.instance={instance}"
    daemon.docker(
        "run",
        "--detach",
        "--network=host",
        "--label",
        label,
        "--name=left-over",
        "--entrypoint=sleep",
        IMAGE,
        "600",
    )
    daemon.docker("run", "--detach", "--network=host", "--name=another", "--entrypoint=sleep", IMAGE, "600")
    cluster.kill(worker)
    wait_for(lambda: daemon.containers() == ["another"], 60, "the container to be removed")
    daemon.docker("rm", "--force", "another")
