"""Starting and stopping a local cluster from the outside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from services.local import logs
from services.local.home import Home, Plan, ProgramRequest
from services.local.preconditions import (
    INITIAL_PASSWORD,
    CannotStart,
    check_password,
    check_port,
    check_same_options,
    check_space,
    is_running,
)
from services.local.processes import is_alive, is_supervisor
from services.local.starting import Start, wait_until_up

STOP_TIMEOUT_S = 60.0


class Supervisor(Protocol):
    """A supervisor that this process started: a `subprocess.Popen`, or what takes its place."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...


_started: dict[int, Supervisor] = {}
"""Supervisors started by this process, which must reap them when they exit."""


def up(
    plan: Plan,
    home: Home,
    *,
    fresh: bool = False,
    force: bool = False,
    password: str = "",
    start: Callable[..., Supervisor] = subprocess.Popen,
) -> str:
    """Start a cluster and return the address of the gateway.

    Returns once the gateway answers and every worker has registered. `fresh` deletes all data first. A
    running cluster with that name is left alone if it was started with the same options, and otherwise
    replaced only with `force`. The plan is kept for the next start, unless an earlier one is there and the
    cluster does not start. `password` is set for the users `admin` and `determined` if they have none.
    `start` starts the supervisor; it is called like `subprocess.Popen`. Raises `CannotStart`.
    """
    address = plan.address
    if is_running(home) and not force:
        check_same_options(plan, home, fresh=fresh)
        return address
    last = home.plan()
    # Check first: a refusal must leave the running cluster and its data unchanged.
    check_password(plan, home, password, fresh=fresh)
    if not _may_hold_port(last, plan):
        check_port(plan)
    if not fresh:
        check_space(home)
    down(home, forget=fresh)
    # Now also if the replaced cluster itself held the port.
    check_port(plan)
    check_space(home)
    home.write_plan(plan)
    if password:
        home.store_initial_password(password)
    log_sizes = logs.log_sizes(home.folder("logs"))
    with (home.folder("logs") / "supervisor.log").open("ab") as output:
        process = start(
            [sys.executable, "-P", "-m", "services.local", "run", "--name", home.name],
            env=_child_environment() | {"STEADFAST_HOME": str(home.path.parent.parent)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    _started[process.pid] = process
    if home.read("processes.json") is None:
        # Otherwise the supervisor was faster and has already recorded its programs.
        home.write("processes.json", {"supervisor": process.pid})
    try:
        wait_until_up(Start(plan, home, process.pid), home, process.poll, log_sizes)
    except CannotStart:
        down(home)
        # The first plan stays, so that there is a cluster whose logs can be shown.
        if last is not None:
            home.write_plan(last)
        raise
    return address


def _may_hold_port(before: Plan | None, plan: Plan) -> bool:
    """Whether the cluster that is to be replaced may itself listen where the new one is to listen."""
    if before is None or before.port != plan.port:
        return False
    return before.host == plan.host or before.listens_everywhere or plan.listens_everywhere


def _child_environment() -> dict[str, str]:
    # The password is for the gateway only, which reads it from a file.
    return {name: text for name, text in os.environ.items() if name != INITIAL_PASSWORD}


def stop_program(home: Home, name: str, number: int = signal.SIGTERM) -> None:
    """Stop one program of a running cluster and keep it stopped. Returns when it has exited."""
    pid = (home.read("processes.json") or {})[name]
    # Before the signal, or the supervisor would start it again.
    home.write_request(name, ProgramRequest(stopped=True, settings=home.read_request(name).settings))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    _wait_for_exit(pid)


def start_program(home: Home, name: str, settings: dict[str, str] | None = None) -> None:
    """Restart a program that was stopped, optionally with additional settings."""
    home.write_request(name, ProgramRequest(settings=home.read_request(name).settings | (settings or {})))


def down(home: Home, *, forget: bool = False) -> bool:
    """Stop a cluster if it runs, including its trials. Returns whether there was anything to stop."""
    # Additional workers first, while there is a broker to which they can report the end of what they run.
    for path in sorted(home.path.glob("agent-*.json")):
        stop_recorded(path)
    pids = home.read("processes.json") or {}
    supervisor = pids.get("supervisor")
    running = is_running(home)
    if running and supervisor is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGTERM)
        _wait_for_exit(supervisor)
    (home.path / "processes.json").unlink(missing_ok=True)
    if forget and home.path.exists():
        shutil.rmtree(home.path)
    return running


def stop_recorded(path: Path) -> bool:
    """Stop the process named in a file and remove the file. Returns whether it was running."""
    try:
        pid = int(json.loads(path.read_bytes())["pid"])
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        print(f"{path} is damaged: if the worker is running, stop it by hand", file=sys.stderr)
        path.unlink(missing_ok=True)
        return False
    running = is_supervisor(pid)
    if running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        _wait_for_exit(pid)
    path.unlink(missing_ok=True)
    return running


def _wait_for_exit(pid: int) -> None:
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    if is_alive(pid):
        os.kill(pid, signal.SIGKILL)
    if pid in _started:
        _started.pop(pid).wait()
