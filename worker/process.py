"""Runs on this host: start one under a shim, find it again after a restart, signal it, read its end.

A run is a directory; the shim's package docstring lists the files in it. This module keeps no state between
calls, so a worker can be killed at any point.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import structlog

from services.kit import host_processes
from services.kit.files import write_atomic
from worker.shim import engine
from worker.shim.control_group import ControlGroups
from worker.shim.life import LOCK

State = Literal["prepared", "running", "exited", "lost"]
SHIM = Path(__file__).parent / "shim" / "__main__.py"
INFO_DIR = "DET_INFO_DIR"
"""A variable whose value is unique to each run; it identifies stray processes."""
START_S = 60.0
ORPHAN_KILL_TIMEOUT_S = 2.0
T = TypeVar("T", bound=msgspec.Struct)

log = structlog.get_logger()


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, distinguishable from a later one with the same pid."""

    pid: int
    started: int
    """Clock ticks since boot."""

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return host_processes.started(self.pid) == self.started


class Running(msgspec.Struct, frozen=True):
    """The processes of a run. The command leads its own session and process group."""

    shim: ProcessIdentity
    command: ProcessIdentity


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    code: int
    """The command's exit code: 128 + n after signal n, 127 if it could not be started."""
    signal: int | None = None
    message: str = ""
    """What else went wrong, in words for the user."""
    left_over: int = 0
    """Number of processes that the command left behind and that were ended."""
    lost_lines: int = 0
    """Number of output lines that could not be written to disk."""
    lost: bool = False
    """Whether it ended without failing: its host lost contact to the cluster, or its shim was found gone."""
    at: float = 0.0
    """Seconds since the epoch."""


class StartFailed(Exception):
    """No shim could be started for a run; the text says why and where to look."""


class Fence(msgspec.Struct, frozen=True):
    """Ends a run when its host has been out of contact for too long."""

    contact: str
    """File with the time of the last contact, in seconds since boot."""
    after_s: float


class RunAs(msgspec.Struct, frozen=True):
    """The user that a command runs as: no other groups, no rights of the worker, no way to gain rights."""

    uid: int
    gid: int
    binds: tuple[tuple[str, str], ...] = ()
    """Folders, and where only the command sees them mounted.

    Folders that this user cannot open are refused.
    """
    max_processes: int = 0
    """Processes and threads that all tasks of this user may have on the host; 0: no limit."""


class Group(msgspec.Struct, frozen=True):
    """A control group that the command and all that it starts are in."""

    folder: str
    values: tuple[tuple[str, str], ...]
    """What is written into its files, in this order."""
    limits: str = ""
    """What is said to a user whose processes the kernel ended for their memory."""


class End(msgspec.Struct, frozen=True):
    """The command that ends a run held by a container engine. Safe to repeat."""

    argv: tuple[str, ...]
    env: dict[str, str]


def prepare(
    run_dir: Path,
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    fence: Fence | None = None,
    run_as: RunAs | None = None,
    end: End | None = None,
    output_bytes: int = 0,
    output_bytes_s: int = 0,
    groups: Sequence[Group] = (),
) -> None:
    """Prepare a run without starting it. Its output is kept up to `output_bytes`; 0: all of it.

    If it prints more than `output_bytes_s` a second for long, it waits while printing; 0: never.

    Only the worker's user may read the directory: `env` holds tokens.
    """
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Not msgspec: environment bytes that are not UTF-8 are lone surrogates here.
    spec: dict[str, object] = {"argv": list(argv), "cwd": str(cwd), "env": dict(env)}
    if fence is not None:
        spec["fence"] = msgspec.to_builtins(fence)
    if run_as is not None:
        spec["run_as"] = msgspec.to_builtins(run_as)
    if output_bytes:
        spec["output_bytes"] = output_bytes
    if output_bytes_s:
        spec["output_bytes_s"] = output_bytes_s
    if groups:
        spec["groups"] = msgspec.to_builtins(groups)
    if end is not None:
        spec["end"] = msgspec.to_builtins(end)
    # It need not survive a power loss, as nothing of the run does.
    write_atomic(run_dir / "spec.json", json.dumps(spec).encode(), durable=False)


def is_prepared(run_dir: Path) -> bool:
    """Whether there is all that is needed to start a run. A power loss may have damaged it."""
    try:
        json.loads((run_dir / "spec.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return True


def start(run_dir: Path) -> None:
    """Start a prepared run. Returns once its command runs or has ended; blocks for about 20 ms.

    Does nothing if the run was already started, by whatever process. Raises `StartFailed`.
    """
    # Isolated and without site-packages: it starts faster, and nothing that a user installed can break it.
    command = [sys.executable, "-I", "-S", str(SHIM), str(run_dir)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_S,
            # Otherwise the signals of a terminal, or of a service manager, would reach the shim as well.
            start_new_session=True,
            # Tasks that run as the same user can read this environment.
            env={name: value for name, value in os.environ.items() if not name.startswith("STEADFAST_")},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartFailed(f"no shim for run {run_dir}: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()[-500:] or f"see {run_dir / 'shim.log'}"
        raise StartFailed(f"no shim for run {run_dir}: {reason}")


def find_runs(runs_dir: Path) -> dict[Path, State]:
    """All runs below a directory, in order of name, with their states."""
    if not runs_dir.is_dir():
        return {}
    return {spec.parent: state_of(spec.parent) for spec in sorted(runs_dir.glob("*/spec.json"))}


def state_of(run_dir: Path) -> State:
    """The state of a run.

    `lost`: the shim was killed or its records were damaged, so no end follows; see `end_lost_run`.
    """
    if not (run_dir / "running.json").exists() and not _has_ended(run_dir):
        return "running" if _is_locked(run_dir) else "prepared"
    # Read the record only after it is known to exist: the shim may be writing it right now.
    running = _read_running(run_dir)
    is_alive = running is not None and running.shim.is_alive()
    if _has_ended(run_dir):
        return "exited" if read_exit(run_dir) is not None else "lost"
    return "running" if is_alive else "lost"


def _has_ended(run_dir: Path) -> bool:
    return (run_dir / "exit.json").exists()


def read_exit(run_dir: Path) -> Exit | None:
    """How a run ended; None if it has not."""
    return _read(run_dir / "exit.json", Exit)


def send(run_dir: Path, number: int) -> bool:
    """Send a signal to the command only. Returns False if nothing runs."""
    running = _read_running(run_dir)
    if running is None or _has_ended(run_dir) or not running.shim.is_alive():
        return False
    host_processes.send({running.shim.pid}, number)
    return True


def kill(run_dir: Path) -> bool:
    """Kill the command and everything it started. Returns False if nothing runs. May be repeated."""
    return send(run_dir, signal.SIGQUIT)


def end_lost_run(run_dir: Path, message: str, *, lost: bool = False) -> Exit:
    """End what is left of a lost run, and record its end. Blocks for 2 s; longer for containers."""
    deadline = time.monotonic() + ORPHAN_KILL_TIMEOUT_S
    _groups_of(run_dir).forbid_processes()
    # Repeatedly, because a process may have forked between the look and the signal.
    while (left := _orphaned_pids(run_dir)) and time.monotonic() < deadline:
        host_processes.send(left, signal.SIGKILL)
        time.sleep(0.02)
    _end_container(run_dir)
    _groups_of(run_dir).remove()
    recorded = read_exit(run_dir)
    if recorded is not None:
        return recorded
    code = 128 + signal.SIGKILL
    record = Exit(code=code, signal=signal.SIGKILL, message=message, lost=lost, at=time.time())
    write_atomic(run_dir / "exit.json", msgspec.json.encode(record), durable=False)
    return record


def _orphaned_pids(run_dir: Path) -> set[int]:
    """Processes left without a shim: the command's session, and every process with the run's info folder."""
    running = _read_running(run_dir)
    left = _groups_of(run_dir).pids()
    # None: the command itself has ended, but its session may still have members. Another start time: the pid
    # was reused.
    if running is not None and host_processes.started(running.command.pid) in (None, running.command.started):
        left |= host_processes.descendants(running.command.pid, session=running.command.pid)
    try:
        info_dir = json.loads((run_dir / "spec.json").read_bytes())["env"].get(INFO_DIR)
    except (FileNotFoundError, ValueError):
        # Damaged: only their session identifies the processes.
        info_dir = None
    if info_dir:
        mark = os.fsencode(f"{INFO_DIR}={info_dir}")
        left |= {pid for pid in host_processes.all_pids() if mark in _environment(pid)}
    return left - {os.getpid()}


def _groups_of(run_dir: Path) -> ControlGroups:
    try:
        return ControlGroups(json.loads((run_dir / "spec.json").read_bytes()).get("groups", []))
    except (FileNotFoundError, ValueError):
        return ControlGroups([])


def _end_container(run_dir: Path) -> None:
    try:
        end = msgspec.convert(json.loads((run_dir / "spec.json").read_bytes()).get("end"), End | None)
    except (FileNotFoundError, ValueError):
        return
    if end is not None and (why := engine.end_container(list(end.argv), end.env)):
        log.error("container.not_ended", run=str(run_dir), reason=why)


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _read_running(run_dir: Path) -> Running | None:
    return _read(run_dir / "running.json", Running)


def _read(path: Path, record: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=record)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _is_locked(run_dir: Path) -> bool:
    """Whether a shim is about to start the run."""
    try:
        lock = os.open(run_dir / LOCK, os.O_WRONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
