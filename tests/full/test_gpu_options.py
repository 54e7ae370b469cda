"""What real engines make of the options by which a task gets its GPUs, on hosts without any."""

import json
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

import msgspec
import pytest

from tests.fixtures import docker_daemon, podman
from tests.fixtures.docker_daemon import DockerDaemon
from tests.fixtures.podman import Podman
from tests.worker.launchers.test_command_lines import ASKED
from worker.launchers import ENGINES

pytestmark = pytest.mark.timeout(300)
UUIDS = ("GPU-11111111-steadfast-test", "GPU-22222222-steadfast-test")
IMAGE = "empty:1"


@pytest.fixture
def folder():
    """Short: an engine's sockets are below it."""
    made = Path(tempfile.mkdtemp(prefix="gpus-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def started(engine, folder):
    """An engine with an image that holds nothing."""
    engine.start()
    with tarfile.open(folder / "empty.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    engine.docker("import", str(folder / "empty.tar"), IMAGE)
    return engine


def created(engine, folder, gpus):
    """What the engine says of the container that a worker would run for a task with these GPUs."""
    task = msgspec.structs.replace(
        ASKED, image=IMAGE, gpus=gpus, mounts=(), workdir="/", id_file=str(folder / "id"), uid=0, gid=0
    )
    run, *words = ENGINES[engine.name].command(task)[1:]
    assert run == "run"
    # Made and not started: that takes the GPUs themselves.
    engine.docker("create", *(word for word in words if word not in ("--rm", "--init")))
    (folder / "id").unlink()
    return engine.inspect(task.name)


@pytest.mark.skipif(bool(docker_daemon.unavailable()), reason=docker_daemon.unavailable())
def test_docker_asks_for_the_gpus_of_the_task_and_no_others(folder):
    daemon = DockerDaemon(folder / "docker")
    try:
        started(daemon, folder)
        (device_request,) = created(daemon, folder, UUIDS)["HostConfig"]["DeviceRequests"]
        daemon.docker("rm", "--force", ASKED.name)
        assert created(daemon, folder, ())["HostConfig"]["DeviceRequests"] in (None, [])
    finally:
        daemon.stop()
    assert device_request["DeviceIDs"] == list(UUIDS)
    assert device_request["Count"] == 0
    assert device_request["Capabilities"] == [["gpu"]]


@pytest.fixture
def devices():
    """A description of GPUs as NVIDIA's toolkit writes it, whose devices are ones that every host has."""
    names = dict(zip(UUIDS, ("/dev/zero", "/dev/full"), strict=True))
    described = {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [
            {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/gpu{n}", "hostPath": path}]}}
            for n, (name, path) in enumerate(names.items())
        ],
    }
    file = Path(f"/var/run/cdi/steadfast-test-{os.getpid()}.json")
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(described))
    yield
    file.unlink()


@pytest.mark.skipif(bool(podman.unavailable()), reason=podman.unavailable())
def test_podman_finds_the_gpus_of_the_task_by_their_names(folder, devices):
    engine = Podman(folder / "podman")
    try:
        started(engine, folder)
        errors = {}
        for gpus in (UUIDS, ("GPU-of-nobody",)):
            created(engine, folder, gpus)
            errors[gpus] = engine.docker("start", "--attach", ASKED.name, check=False).stderr
            engine.docker("rm", "--force", ASKED.name)
    finally:
        engine.stop()
    # With its GPUs, what is missing is only a program in the image.
    assert (
        "executable file `sh` not found" in errors[UUIDS]
        or '"sh": executable file not found' in errors[UUIDS]
    )
    assert "unresolvable CDI devices nvidia.com/gpu=GPU-of-nobody" in errors["GPU-of-nobody",]
