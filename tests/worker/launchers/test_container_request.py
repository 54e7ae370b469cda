"""What a configuration may have of a container, and what it is told of the rest."""

import os

import pytest

from det_contracts.events.worker import Slot
from worker.account import Account
from worker.launchers.container_request import (
    SHM_BYTES,
    check_capabilities,
    check_image,
    check_mount,
    describe_unused,
    read_request,
    storage_mounts,
)
from worker.launchers.engine import Mount, Refused
from worker.settings import WorkerSettings

CPU, CUDA = (Slot(0, "cpu", "cpu-0", "CPU"),), (Slot(0, "cuda", "GPU-1", "A100"),)


def of(slots=CPU, **config):
    return read_request(config, slots, "/cwd")


def test_a_configuration_that_names_nothing_asks_for_nothing():
    request = of(environment={"image": {"cpu": "steadfast/trial:cpu", "cuda": "steadfast/trial:cuda"}})
    assert (request.image, request.mounts, request.registry, request.shm_bytes) == ("", (), None, SHM_BYTES)
    assert describe_unused({}, CPU, "/cwd") == []
    assert of() == request


def test_the_image_is_that_of_the_slots():
    image = {"cpu": "small:1", "cuda": "large:1", "rocm": "other:1"}
    assert of(environment={"image": image}).image == "small:1"
    assert of(CUDA, environment={"image": image}).image == "large:1"
    # As commands have it, whose configurations are not completed.
    assert of(environment={"image": "one:1"}).image == "one:1"


def test_all_that_may_be_asked_for():
    request = of(
        environment={
            "force_pull_image": True,
            "registry_auth": {"username": "ann", "password": "hush", "auth": None},
            "ports": {"board": 6006},
            "add_capabilities": ["SYS_PTRACE"],
            "drop_capabilities": ["NET_RAW"],
        },
        resources={"shm_size": "2g", "devices": [{"host_path": "/dev/x", "container_path": "/dev/x"}]},
        bind_mounts=[
            {"host_path": "/data", "container_path": "/in", "read_only": True},
            {"host_path": "/code", "container_path": "lib"},
        ],
    )
    assert request.force_pull
    assert request.devices
    assert (request.registry.username, request.registry.password, request.registry.auth) == (
        "ann",
        "hush",
        "",
    )
    assert (request.ports, request.shm_bytes) == ((6006,), 2 << 30)
    assert request.mounts == (Mount("/data", "/in", read_only=True), Mount("/code", "/cwd/lib"))


@pytest.mark.parametrize(
    "config",
    [
        {"environment": 5},
        {"environment": {"image": 5, "ports": [1]}},
        {"bind_mounts": [{}]},
        {"bind_mounts": 5},
        {"resources": {"shm_size": "much"}},
        {"environment": {"registry_auth": "ann"}},
        {"environment": {"registry_auth": {"username": 5}}},
    ],
)
def test_what_nobody_has_checked_is_refused_in_words(config):
    with pytest.raises(Refused, match="of the configuration cannot be read"):
        of(**config)
    # A plain process starts, as it ever did.
    (message,) = describe_unused(config, CPU, "/cwd")
    assert "of the configuration cannot be read" in message


@pytest.mark.parametrize("image", ["--privileged", "-v/:/host", "a b", "", "a\nb", "x;y"])
def test_no_image_is_an_option_of_the_engine(image):
    with pytest.raises(Refused, match="not a valid image name"):
        check_image(image)


@pytest.mark.parametrize(
    "image", ["debian", "registry.lan:5000/a/b:1", "a@sha256:0f", "/images/x.sif", "docker://a"]
)
def test_names_of_images(image):
    assert check_image(image) == image


def test_capabilities_are_the_operators_to_give():
    request = of(environment={"add_capabilities": ["SYS_PTRACE"]})
    with pytest.raises(Refused, match=r"does not give SYS_PTRACE.*STEADFAST_WORKER_CAPABILITIES"):
        check_capabilities(request, WorkerSettings())
    check_capabilities(request, WorkerSettings(worker_capabilities="NET_ADMIN,SYS_PTRACE"))
    with pytest.raises(Refused, match="not a valid capability name"):
        check_capabilities(of(environment={"drop_capabilities": ["--privileged"]}), WorkerSettings())


def test_mounts_lie_in_the_operators_folders(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "way-out").symlink_to(outside)
    (tmp_path / "way-in").symlink_to(root)
    settings = WorkerSettings(worker_mount_roots=f"/nowhere:{root}")
    mount = check_mount(Mount(str(tmp_path / "way-in"), "/in"), settings, None)
    assert mount == Mount(str(root), "/in")
    for path in (outside, root / "way-out", root / ".." / "outside", tmp_path):
        with pytest.raises(Refused, match=r"is outside of what tasks .*STEADFAST_WORKER_MOUNT_ROOTS"):
            check_mount(Mount(str(path), "/in"), settings, None)
    with pytest.raises(Refused, match="cannot be reached: No such file"):
        check_mount(Mount(str(root / "missing"), "/in"), settings, None)
    with pytest.raises(Refused, match="propagation"):
        check_mount(Mount(str(root), "/in", propagation="all"), settings, None)
    with pytest.raises(Refused, match=r"\(nothing\)"):
        check_mount(Mount(str(root), "/in"), WorkerSettings(), None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another user")
def test_no_mount_leads_past_a_folder_that_is_closed_to_the_tasks_user(tmp_path):
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0o700)
    settings = WorkerSettings(worker_mount_roots=str(tmp_path))
    with pytest.raises(Refused, match=r"cannot be reached as 'ann' \(64001:64001\): Permission denied"):
        check_mount(Mount(str(closed / "inner"), "/in"), settings, Account(64_001, 64_001, "ann"))


def test_storages_are_where_the_host_and_where_0_25_had_them(tmp_path):
    folder = str(tmp_path)
    shared = {"type": "shared_fs", "host_path": folder}
    assert [mount.target for mount in storage_mounts(shared)] == [folder, "/determined_shared_fs"]
    directory = {"type": "directory", "container_path": folder}
    assert [mount.target for mount in storage_mounts(directory)] == [folder]
    assert storage_mounts({"type": "s3", "bucket": "b"}) == storage_mounts(None) == []


def test_options_that_plain_processes_ignore_are_reported():
    mounts = [
        {"host_path": "/data", "container_path": "/in"},
        {"host_path": "/same", "container_path": "/same"},
    ]
    environment = describe_unused({"environment": {"image": "mine:1"}, "bind_mounts": mounts}, CPU, "/cwd")
    assert len(environment) == 2
    assert "environment.image mine:1 is not used" in environment[0]
    assert "STEADFAST_WORKER_LAUNCHER" in environment[0]
    assert "it finds the folder at /data" in environment[1]
