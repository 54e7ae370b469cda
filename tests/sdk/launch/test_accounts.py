"""What needs SSH says so to a task whose user has a number and no account, instead of a traceback."""

import os
import pwd
from types import SimpleNamespace

import pytest

from determined.exec import _serving, shell
from determined.launch import _node, _peers
from tests.fixtures.without_account import lose_account

WHO = f"this task runs as user {os.geteuid()}, and no account here has that id.\n"


@pytest.fixture
def sshd(tmp_path, monkeypatch):
    """An SSH server on PATH, and no account."""
    lose_account(monkeypatch)
    program = tmp_path / "sshd"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DET_SSH_DIR", str(tmp_path))
    monkeypatch.setenv("DET_INFO_DIR", str(tmp_path / "info"))
    (tmp_path / "sshd_config").touch()
    return str(program)


def test_a_shell_says_how_it_can_start(sshd, monkeypatch, capsys):
    monkeypatch.setattr(_serving, "served", lambda *_: _serving.Served(None, {}, "127.0.0.1", 1, "key"))
    with pytest.raises(SystemExit) as ended:
        shell.main()
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith(f"a shell needs SSH, which works for accounts alone: {WHO}Make one")
    assert error.endswith("Until then 'det notebook start' has a terminal.\n")


def test_several_nodes_say_how_they_can_talk(sshd, capsys):
    node = _node.Node(("10.0.0.1", "10.0.0.2"), (1, 1), 0, 1, "1.t1.1")
    with pytest.raises(SystemExit):
        _peers.require_sshd("horovod", node)
    error = capsys.readouterr().err
    assert error.startswith(f"horovod on 2 nodes needs SSH, which works for accounts alone: {WHO}")
    assert "determined.launch.torch_distributed" in error


def test_with_an_account_nodes_find_their_server(sshd, monkeypatch):
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="ann"))
    node = _node.Node(("10.0.0.1", "10.0.0.2"), (1, 1), 0, 1, "1.t1.1")
    assert _peers.require_sshd("horovod", node) == sshd
