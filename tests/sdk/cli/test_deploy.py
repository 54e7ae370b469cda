from __future__ import annotations

import sys

import pytest

from determined.cli import deploy


@pytest.fixture
def platform(tmp_path, monkeypatch):
    """A stand-in for the interpreter that writes down how it was called; answers the calls so far."""
    log = tmp_path / "calls"
    stub = tmp_path / "python"
    stub.write_text(
        f'#!/bin/sh\n[ "$2" = -c ] && exit ${{FOUND:-0}}\necho "$@" >> {log}\nexit ${{ENDS:-0}}\n'
    )
    stub.chmod(0o755)
    monkeypatch.setattr(deploy.sys, "executable", str(stub))
    monkeypatch.setenv("DET_MASTER", "127.0.0.1:1")
    return lambda: log.read_text().splitlines() if log.exists() else []


def test_up_with_defaults(platform, det, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert det("deploy", "local", "cluster-up") == (0, "", "")
    assert platform() == ["-P -m services.local up --name determined --port 8080 --agents 1"]


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
        "-P -m services.local up --name n --port 9 --agents 2 --slots 3 --no-gpu "
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
    assert "pip install steadfast" in result.err
    assert platform() == []


@pytest.mark.parametrize(
    "words", [["--gpu", "--no-gpu"], ["--storage-host-path", "a", "--master-config-path", "b"]]
)
def test_options_that_exclude_each_other(platform, det, words):
    assert det("deploy", "local", "cluster-up", *words).status == 2


def test_masters_and_agents(platform, det, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    det("deploy", "local", "master-up", "--master-name", "m", "--master-port", "9")
    det("deploy", "local", "agent-up", "localhost", "--master-port", "9", "--agent-name", "a", "--no-gpu")
    det("d", "local", "agent-up", "--agent-resource-pool", "p", "--slots", 2, "--agent-name", "b", "here")
    det("d", "local", "agent-down", "--agent-name", "a")
    det("d", "local", "agent-down", "--agent-name", "a", "--all")
    det("d", "local", "master-down", "--master-name", "m", "--delete-db")
    det("d", "local", "logs", "--no-follow")
    assert platform() == [
        "-P -m services.local up --name m --port 9 --agents 0",
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


@pytest.mark.parametrize(("text", "said"), [("security: {authz: {type: rbac}}", "rbac"), ("db: {}", "")])
def test_a_masters_configuration_says_how_rights_are_judged(det, monkeypatch, tmp_path, text, said):
    told = []
    monkeypatch.setattr(deploy, "_platform", lambda words, **variables: told.append(variables) or 0)
    config = tmp_path / "master.yaml"
    config.write_text(text)
    result = det("deploy", "local", "cluster-up", "--master-config-path", config)
    assert (result.status, told) == (0, [{"STEADFAST_AUTHZ": said} if said else {}])
    assert "only security.authz.type is read" in result.err


@pytest.mark.parametrize(
    "text", ["security: {authz: {type: everybody}}", "security: {authz: {type: [rbac]}}", "{"]
)
def test_a_masters_configuration_that_makes_no_sense_starts_nothing(platform, det, tmp_path, text):
    config = tmp_path / "master.yaml"
    config.write_text(text)
    result = det("deploy", "local", "cluster-up", "--master-config-path", config)
    assert (result.status, str(config) in result.err, platform()) == (1, True, [])
