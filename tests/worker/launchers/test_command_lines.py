"""The command lines of engines, word for word: a mistake would give a task what is not its own."""

import csv
import os

import msgspec
import pytest

from worker.launchers import ENGINES, BadLauncher, cli_environment, engine_named
from worker.launchers.apptainer import reference
from worker.launchers.engine import Container, Mount, Refused, Registry

ASKED = Container(
    name="steadfast-1.t1.1-abc",
    labels={"steadfast.instance": "abc"},
    image="registry.lan:5000/team/train:3",
    argv=("sh", "-c", '. "$0" && exec "$@"', "/runs/1/info/environment.sh", "python3", "train.py"),
    workdir="/runs/1/workdir",
    mounts=(
        Mount("/runs/1/workdir", "/runs/1/workdir"),
        Mount("/data/in", "/in", read_only=True, propagation="rprivate"),
    ),
    uid=64_000,
    gid=64_001,
    gpus=("GPU-1", "GPU-2"),
    shm_bytes=1 << 30,
    ports=(17_000, 6006),
    id_file="/runs/1/container.id",
    options=("--init",),
    registry=Registry(username="ann", password="hush"),
)
COMMON = [
    "run",
    "--rm",
    "--name",
    "steadfast-1.t1.1-abc",
    "--label",
    "steadfast.instance=abc",
    "--cidfile",
    "/runs/1/container.id",
    "--pull=never",
    "--log-driver=none",
    "--user",
    "64000:64001",
]


def but(**changes):
    return msgspec.structs.replace(ASKED, **changes)


def after(words, option):
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def test_docker():
    assert engine_named("docker").command(ASKED) == [
        "docker",
        *COMMON,
        "--security-opt=no-new-privileges",
        "--workdir",
        "/runs/1/workdir",
        "--shm-size",
        str(1 << 30),
        "--network=host",
        "--gpus",
        '"device=GPU-1,GPU-2"',
        "--mount",
        "type=bind,source=/runs/1/workdir,target=/runs/1/workdir",
        "--mount",
        "type=bind,source=/data/in,target=/in,readonly,bind-propagation=rprivate",
        "--init",
        "--entrypoint",
        "sh",
        "registry.lan:5000/team/train:3",
        *ASKED.argv[1:],
    ]
    assert engine_named("docker").end_command("x") == ["docker", "rm", "--force", "x"]


def test_podman_with_and_without_root(monkeypatch):
    podman = engine_named("podman")
    for user, more in ((0, []), (1000, ["--userns=keep-id"])):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        words = podman.command(ASKED)
        assert words[: len(COMMON) + 1] == ["podman", *COMMON]
        assert [word for word in words if word.startswith("--userns")] == more
        assert [word for word in words if word.startswith("--device")] == [
            "--device=nvidia.com/gpu=GPU-1",
            "--device=nvidia.com/gpu=GPU-2",
        ]
        assert "--gpus" not in words
    assert podman.end_command("x") == ["podman", "rm", "--force", "--ignore", "--time=0", "x"]


def test_apptainer():
    apptainer = engine_named("apptainer")
    assert apptainer.command(ASKED) == [
        "apptainer",
        "exec",
        "--cleanenv",
        "--contain",
        "--no-home",
        "--writable-tmpfs",
        "--nv",
        "--pwd",
        "/runs/1/workdir",
        "--bind",
        "/runs/1/workdir:/runs/1/workdir",
        "--bind",
        "/data/in:/in:ro",
        "--init",
        "docker://registry.lan:5000/team/train:3",
        *ASKED.argv,
    ]
    # What it starts is below the shim, as its own user.
    assert apptainer.as_task_user
    # `--nv` brings all GPUs of the host into the container, so that its task needs the driver's indices.
    assert not apptainer.hides_gpus
    assert apptainer.end_command("x") == apptainer.inspect_command("x") == []
    assert apptainer.secrets(ASKED) == {
        "APPTAINER_DOCKER_USERNAME": "ann",
        "APPTAINER_DOCKER_PASSWORD": "hush",
    }
    assert apptainer.secrets(but(registry=None)) == {}
    with pytest.raises(Refused, match="cannot mount '/a:b'"):
        apptainer.command(but(mounts=(Mount("/a:b", "/c"),)))
    assert apptainer.unsupported_requests(ASKED) == []
    assert "no container networks" in apptainer.unsupported_requests(but(network="bridge"))[0]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("pytorch/pytorch", "docker://pytorch/pytorch"),
        ("/images/train.sif", "/images/train.sif"),
        ("train.sif", "train.sif"),
        ("oras://registry.lan/train:3", "oras://registry.lan/train:3"),
    ],
)
def test_images_in_the_words_of_apptainer(image, expected):
    assert reference(image) == expected


@pytest.mark.parametrize("name", ENGINES)
def test_no_secret_is_in_a_command_line(name, tmp_path):
    engine = ENGINES[name]
    for words in (engine.command(ASKED), engine.pull_command(ASKED.image, tmp_path)):
        assert "hush" not in " ".join(words)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_comma_in_a_path_is_no_further_field(name):
    words = ENGINES[name].command(but(mounts=(Mount("/a,readonly=false", "/b", read_only=True),)))
    (value,) = after(words, "--mount")
    assert next(csv.reader([value])) == ["type=bind", "source=/a,readonly=false", "target=/b", "readonly"]


def test_ports_are_published_where_the_network_is_not_the_hosts():
    words = ENGINES["docker"].command(but(network="bridge"))
    assert [word for word in words if word.startswith(("--publish", "--network"))] == [
        "--network=bridge",
        "--publish=17000:17000",
        "--publish=6006:6006",
    ]


def test_rights():
    docker = ENGINES["docker"]
    words = docker.command(but(add_capabilities=("SYS_PTRACE",), drop_capabilities=("NET_RAW",)))
    assert "--cap-add=SYS_PTRACE" in words
    assert "--cap-drop=NET_RAW" in words
    assert "--security-opt=no-new-privileges" not in docker.command(but(uid=0))


def test_nothing_that_a_user_chooses_reaches_the_engines_program():
    operators = {"PATH": "/usr/bin", "HOME": "/root", "DOCKER_HOST": "unix:///run/docker.sock"}
    others = {"LD_PRELOAD": "/tmp/x.so", "STEADFAST_TRIAL_SIGNING": "/keys", "AWS_SECRET_ACCESS_KEY": "hush"}
    assert cli_environment(operators | others) == operators
    assert cli_environment({}) == {"PATH": os.defpath}


def test_names_of_launchers():
    assert engine_named("process") is None
    with pytest.raises(BadLauncher, match="=kubectl: expected one of process, docker, podman, apptainer"):
        engine_named("kubectl")
