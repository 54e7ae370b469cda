"""`det notebook` and `det shell`: what they ask, and the command line of ssh."""

from __future__ import annotations

import shlex
import stat

import pytest

from determined.cli import shell, task_verbs, tunnel
from determined.exec.notebook import Idleness
from tests.sdk.fake_gateway import Lines

NOTEBOOK = {"id": "n-1", "state": "STATE_RUNNING", "serviceAddress": "/proxy/n-1/"}
SHELL = {
    "id": "s-1",
    "state": "STATE_RUNNING",
    "username": "ann",
    "privateKey": "the key\n",
    "hostKey": "ssh-ed25519 B",
    "agentUserGroup": {"user": "ann"},
}


@pytest.fixture
def here(master, monkeypatch):
    monkeypatch.setattr(task_verbs, "_POLL_S", 0)
    for kind, task in (("notebook", NOTEBOOK), ("shell", SHELL)):
        master.answer("POST", f"/api/v1/{kind}s", {kind: task, "config": {"x": 1}})
        master.answer("GET", f"/api/v1/{kind}s", {f"{kind}s": [task]})
        master.answer("GET", f"/api/v1/{kind}s/{task['id']}", {kind: task, "config": {}})
    return master


def test_a_notebook_is_started_and_its_address_printed(here, det):
    done = det("notebook", "start", "--no-browser", "--config", "idle_timeout=1h")
    assert done.out.splitlines()[0] == "Launched notebook (id: n-1)."
    assert done.out.splitlines()[1].endswith("/proxy/n-1/")
    assert det("notebook", "start", "-d").out == "n-1\n"


def test_a_preview_shows_the_configuration(here, det):
    assert det("notebook", "start", "--preview").out.strip() == "x: 1"


def test_one_that_has_ended_says_where_to_look(here, det):
    ended = {**NOTEBOOK, "state": "STATE_TERMINATED", "exitStatus": "exit code 1"}
    here.answer("GET", "/api/v1/notebooks/n-1", {"notebook": ended})
    done = det("notebook", "open", "n-1")
    assert (done.status, "has ended (exit code 1); see 'det notebook logs n-1'" in done.err) == (1, True)
    newest_first = [{"result": {"message": line}} for line in ("pip install jupyterlab\n", "no jupyterlab\n")]
    here.answer("GET", "/api/v1/tasks/n-1/logs", Lines(newest_first))
    done = det("notebook", "open", "n-1")
    assert (done.status, done.out) == (1, "no jupyterlab\npip install jupyterlab\n")
    (query,) = here.calls_to("GET", "/api/v1/tasks/n-1/logs")[-1:]
    assert "ORDER_BY_DESC" in str(query)


def test_the_command_line_of_ssh(here, det, tmp_path):
    words = shlex.split(det("shell", "show_ssh_command", "s", "--", "-L", "1:localhost:1").out)
    assert words[-3:] == ["ann@s-1", "-L", "1:localhost:1"]
    assert any(word.startswith("ProxyCommand=") and word.endswith(" %h") for word in words)
    made = shell.ssh_command("http://m", SHELL, tmp_path, ["true"])
    assert made[-2:] == ["ann@s-1", "true"]
    assert (tmp_path / "known_hosts").read_text() == "s-1 ssh-ed25519 B\n"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_missing_key_is_reported(here, det):
    here.answer("GET", "/api/v1/shells/s-1", {"shell": {**SHELL, "privateKey": ""}})
    done = det("shell", "open", "s-1")
    assert (done.status, "belongs to ann, and only that user has its key" in done.err) == (1, True)
    assert "passphrase" in det("shell", "start", "-p").err


@pytest.mark.parametrize(
    ("master_url", "address"),
    [
        ("https://m:8443/", "wss://m:8443/proxy/7f/"),
        ("http://m/below", "ws://m/below/proxy/7f/"),
        ("m:80", "ws://m:80/proxy/7f/"),
    ],
)
def test_where_a_shell_is(master_url, address):
    assert tunnel.address_of(master_url, "7f") == address


def kernel(**more):
    return {"connections": 0, "execution_state": "idle", "last_activity": "2026-01-01T00:00:00Z", **more}


@pytest.mark.parametrize(
    ("kind", "kernels", "terminals", "idle"),
    [
        ("kernels_or_terminals", [], [], True),
        ("kernels_or_terminals", [kernel()], [], False),
        ("kernels_or_terminals", [], [{"name": "1"}], False),
        ("kernel_connections", [kernel()], [{"name": "1"}], True),
        ("kernel_connections", [kernel(), kernel(connections=1)], [], False),
        ("activity", [kernel(execution_state="busy")], [], False),
    ],
)
def test_when_a_notebook_is_idle(kind, kernels, terminals, idle):
    looking = Idleness(kind)
    looking.is_idle(kernels, terminals)
    assert looking.is_idle(kernels, terminals) is idle


def test_what_did_something_since_the_last_look_is_used():
    looking = Idleness("activity")
    assert not looking.is_idle([kernel()], [])
    assert looking.is_idle([kernel()], [])
    assert not looking.is_idle([kernel(last_activity="2026-01-01T00:00:09Z")], [])
