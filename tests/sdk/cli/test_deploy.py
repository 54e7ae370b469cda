from __future__ import annotations

import pytest

from determined.cli import platform_command


@pytest.fixture
def platform(tmp_path, monkeypatch):
    """A stand-in for the interpreter that writes down how it was called; answers the calls so far."""
    log = tmp_path / "calls"
    stub = tmp_path / "python"
    stub.write_text(
        f'#!/bin/sh\n[ "$2" = -c ] && exit ${{FOUND:-0}}\necho "$@" >> {log}\nexit ${{ENDS:-0}}\n'
    )
    stub.chmod(0o755)
    monkeypatch.setattr(platform_command.sys, "executable", str(stub))
    monkeypatch.setenv("DET_MASTER", "127.0.0.1:1")
    return lambda: log.read_text().splitlines() if log.exists() else []


def test_an_option_that_is_not_typed_is_left_to_the_last_start(platform, det):
    assert det("deploy", "local", "cluster-up") == (0, "", "")
    det("deploy", "local", "cluster-up", "--gpu", "--no-tls")
    det("deploy", "local", "cluster-up", "--no-gpu", "--tls")
    assert platform() == [
        "-P -m services.local up --name determined",
        "-P -m services.local up --name determined --gpu --no-tls",
        "-P -m services.local up --name determined --no-gpu --tls",
    ]


def test_up_with_everything(platform, det, tmp_path):
    words = [
        "--no-gpu",
        "--agents",
        "2",
        "--slots",
        "3",
        "--master-port",
        "9",
        "--cluster-name",
        "n",
        "--delete-db",
    ]
    det("d", "local", "cluster-up", *words, "--storage-host-path", tmp_path)
    assert platform() == [
        "-P -m services.local up --name n --agents 2 --port 9 --slots 3 --no-gpu "
        f"--storage {tmp_path.resolve()} --delete-db"
    ]


def test_a_relative_storage_path_is_made_absolute(platform, det, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    det("deploy", "local", "cluster-up", "--no-gpu", "--storage-host-path", "here")
    assert f"--storage {tmp_path.resolve() / 'here'}" in platform()[0]


def test_options_of_the_container_world_are_noted(platform, det):
    words = ["--det-version", "0.25.0", "--db-password", "p", "--image-repo-prefix", "r", "--no-autorestart"]
    result = det(
        "deploy", "local", "cluster-up", "--no-gpu", *words, "--auto-work-dir", "/x", "--no-preflight-checks"
    )
    assert result.status == 0
    for option in (
        "--det-version",
        "--db-password",
        "--image-repo-prefix",
        "--no-autorestart",
        "--auto-work-dir",
    ):
        assert f"Note: {option} is ignored" in result.err
    assert len(platform()) == 1


def test_status(platform, det):
    assert det("deploy", "local", "status").status == 0
    det("deploy", "local", "status", "--cluster-name", "n")
    assert platform() == [
        "-P -m services.local status --name determined",
        "-P -m services.local status --name n",
    ]


def test_down(platform, det):
    assert det("deploy", "local", "cluster-down").status == 0
    det("deploy", "local", "cluster-down", "--cluster-name", "n", "--delete-db")
    assert platform() == [
        "-P -m services.local down --name determined",
        "-P -m services.local down --name n --delete-db",
    ]


def test_a_failure_of_the_platform_is_ours(platform, det, monkeypatch):
    monkeypatch.setenv("ENDS", "1")
    assert det("deploy", "local", "cluster-up").status == 1


def test_without_the_platform_one_line_says_what_to_install(platform, det, monkeypatch):
    monkeypatch.setenv("FOUND", "1")
    result = det("deploy", "local", "cluster-up")
    assert result.status == 1
    assert result.err.count("\n") == 1
    assert "install the wheel of steadfast" in result.err
    # On PyPI, that name belongs to another project.
    assert "pip install" not in result.err
    assert platform() == []


@pytest.mark.parametrize(
    "words", [["--gpu", "--no-gpu"], ["--storage-host-path", "a", "--master-config-path", "b"]]
)
def test_options_that_exclude_each_other(platform, det, words):
    assert det("deploy", "local", "cluster-up", *words).status == 2


def test_masters_and_agents(platform, det):
    det("deploy", "local", "master-up", "--master-name", "m", "--master-port", "9")
    det("deploy", "local", "agent-up", "localhost", "--master-port", "9", "--agent-name", "a", "--no-gpu")
    det("d", "local", "agent-up", "--agent-resource-pool", "p", "--slots", 2, "--agent-name", "b", "here")
    det("d", "local", "agent-down", "--agent-name", "a")
    det("d", "local", "agent-down", "--agent-name", "a", "--all")
    det("d", "local", "master-down", "--master-name", "m", "--delete-db")
    det("d", "local", "logs", "--no-follow")
    assert platform() == [
        "-P -m services.local up --name m --agents 0 --port 9",
        "-P -m services.local agent-up localhost --port 9 --agent-name a --pool default --no-gpu",
        "-P -m services.local agent-up here --port 8080 --agent-name b --pool p --slots 2",
        "-P -m services.local agent-down --agent-name a",
        "-P -m services.local agent-down --agent-name a --all",
        "-P -m services.local down --name m --delete-db",
        "-P -m services.local logs --name determined --no-follow",
    ]


@pytest.mark.parametrize("cloud", ["aws", "gcp", "gke"])
def test_clouds_are_not_supported(platform, det, cloud):
    result = det("deploy", cloud, "up", "--cluster-id", "x")
    assert (result.status, "supported" in result.err) == (1, True)
    assert platform() == []


def test_backup_and_restore(platform, det, tmp_path):
    folder, key = tmp_path / "backup", tmp_path / "key"
    assert det("deploy", "local", "backup", str(folder), "--key-file", str(key)).status == 0
    words = ["--cluster-name", "other", "--master-port", "81", "--key-file", str(key)]
    det("deploy", "local", "restore", str(folder), *words)
    det("deploy", "local", "restore", str(folder))
    assert platform() == [
        f"-P -m services.local backup --name determined {folder} --key-file {key}",
        f"-P -m services.local restore --name other {folder} --key-file {key} --port 81",
        f"-P -m services.local restore --name determined {folder}",
    ]


def test_a_password_is_reset_by_the_platform(platform, det):
    """It is no argument, as all users of a machine can read those."""
    assert det("deploy", "local", "reset-password", "admin").status == 0
    det("deploy", "local", "reset-password", "ann", "--admin", "--password-file", "-", "--cluster-name", "n")
    assert platform() == [
        "-P -m services.local reset-password --name determined admin",
        "-P -m services.local reset-password --name n ann --admin --password-file -",
    ]


def test_the_configuration_of_a_master_is_read_by_the_platform(platform, det, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    det("deploy", "local", "cluster-up", "--no-gpu", "--master-config-path", "master.yaml")
    assert f"--master-config {tmp_path.resolve() / 'master.yaml'}" in platform()[0]
    assert "--port" not in platform()[0]  # which the file may say


def test_slurm_is_the_platforms_work(platform, det, tmp_path):
    (tmp_path / "pools.yaml").write_text("")
    det("deploy", "slurm", "render", tmp_path / "pools.yaml", "gpu", "--worker-id", "x")
    det("deploy", "slurm", "up", tmp_path / "pools.yaml", "--host", "10.0.0.1", "--force")
    det("deploy", "slurm", "status", "--cluster-name", "n")
    det("deploy", "slurm", "down")
    assert platform() == [
        f"-P -m services.local.on_slurm render --name determined {tmp_path}/pools.yaml gpu --worker-id x",
        f"-P -m services.local.on_slurm up --name determined --host 10.0.0.1 --force {tmp_path}/pools.yaml",
        "-P -m services.local.on_slurm status --name n",
        "-P -m services.local.on_slurm down --name determined",
    ]


def test_kubernetes_is_the_platforms_work(platform, det):
    det("deploy", "kubernetes", "render", "--values", "a.yaml", "--values", "b.yaml", "--chart", "c")
    det("deploy", "k8s", "up", "--keys", "k", "--brokers", "3", "--namespace", "ml", "--wait")
    det("deploy", "kubernetes", "down", "--delete-data")
    det("deploy", "kubernetes", "status", "--workers-namespace", "tasks")
    assert platform() == [
        "-P -m services.local.on_kubernetes render --name=steadfast --namespace=steadfast --chart=c "
        "--values=a.yaml --values=b.yaml",
        "-P -m services.local.on_kubernetes up --name=steadfast --namespace=ml --keys=k --brokers=3 --wait",
        "-P -m services.local.on_kubernetes down --name=steadfast --namespace=steadfast --delete-data",
        "-P -m services.local.on_kubernetes status --name=steadfast --namespace=steadfast "
        "--workers-namespace=tasks",
    ]
