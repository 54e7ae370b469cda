"""One template, as the worker sees it: a process that starts runs on request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO

import msgspec

from services.kit.readable import wait_until_readable
from worker.warm.warm_start import Key, WarmStart

SITE = Path(__file__).parent / "inside" / "site"
NAME = "steadfast_template"
"""Stands for the script on its command line, so that it can be recognised in a process list."""
READY_TIMEOUT_S = 120.0
START_S = 5.0
STARTED = b"+"


class Report(msgspec.Struct, frozen=True):
    """What a template reports after it has loaded its modules."""

    pid: int
    why: str
    """Why it cannot be used; "" if it can."""
    culprit: str
    """The module whose import made it unfit."""
    modules: list[str]
    """The loaded modules of installed packages."""
    tops: list[str]
    """The top-level names of all loaded modules."""


class NoTemplate(Exception):
    """A template cannot be used; the text says why."""

    def __init__(self, why: str, culprit: str = "") -> None:
        super().__init__(why)
        self.culprit = culprit


class Template:
    """A process that is forked for each run. It ends with the worker, or on request."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, report: Report) -> None:
        self._process = process
        self._control = control
        self._through_shell = report.pid != process.pid
        self._pid = report.pid
        self.in_order = report.modules
        self.modules = frozenset(report.modules)
        self.tops = frozenset(report.tops)
        self.made_at = time.monotonic()
        self.ended = False
        self._reaper: threading.Thread | None = None

    def size(self) -> int:
        """Its proportional share of memory, in bytes."""
        try:
            text = Path(f"/proc/{self._pid}/smaps_rollup").read_text()
        except OSError:
            return 0
        return int(text.split("Pss:")[1].split()[0]) * 1024

    async def start(self, plan: WarmStart, run_dir: Path) -> bool:
        """Start a prepared run. Returns False if it did not start and may be started cold."""
        request = {
            **plan.program(),
            "run": str(run_dir),
            "words": plan.words,
            "through_shell": self._through_shell,
            "ranks": plan.ranks,
        }
        read, write = os.pipe()
        try:
            socket.send_fds(self._control, [msgspec.json.encode(request)], [write])
        except OSError:
            os.close(read)
            return False
        finally:
            os.close(write)
        try:
            return await _read_byte(read) == STARTED
        finally:
            os.close(read)

    def end(self) -> None:
        """End it. Runs that were started from it continue."""
        if not self.ended:
            self.ended = True
            self._control.close()
            self._reaper = _kill(self._process)

    def wait_until_gone(self) -> None:
        """Return once an ended template has given back its memory."""
        if self._reaper is not None:
            self._reaper.join()


async def make(
    key: Key,
    names: Sequence[str],
    modules: Sequence[str],
    script: WarmStart | None = None,
    without: Collection[str] = (),
) -> Template:
    """Start a template and let it load modules. Raises `NoTemplate`.

    `names` are variables that runs will have and the template does not. If no `modules` are known, it loads
    what the text of `script` shows that it imports, except packages in `without`.
    """
    worker_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = os.memfd_create("template")
    begin = {"modules": modules, "names": names, "env": dict(key.env), "without": list(without)}
    os.pwrite(order, msgspec.json.encode(begin | {"script": script and script.program()}), 0)
    worker_end.setblocking(False)
    process = None
    try:
        with child_end:
            process = await asyncio.to_thread(_spawn, key, child_end.fileno(), order)
        report = await _receive_report(worker_end, order, process)
        return Template(process, worker_end, report)
    except BaseException as error:
        worker_end.close()
        if process is not None:
            _kill(process)
        if isinstance(error, OSError | msgspec.MsgspecError):
            # It may have ended just now, or have written anything for a report.
            raise NoTemplate(f"it cannot be used: {error}") from error
        raise
    finally:
        os.close(order)


def _kill(process: subprocess.Popen[bytes]) -> threading.Thread:
    """Kill a template and its shell, if any; returns who waits for its end. Shims have their own sessions."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # On a busy host it takes the kernel a second to free the memory of torch. The worker's runs do not wait.
    reaper = threading.Thread(target=process.wait, name="template's end", daemon=True)
    reaper.start()
    return reaper


def _spawn(key: Key, control: int, order: int) -> subprocess.Popen[bytes]:
    env = dict(key.env)
    own = {
        "PYTHONPATH": os.pathsep.join([str(SITE), *([env["PYTHONPATH"]] if "PYTHONPATH" in env else [])]),
        "STEADFAST_TEMPLATE": f"{control},{order}",
    }
    try:
        # Pipes, as scripts have: Python sets up its standard streams differently for other files.
        return subprocess.Popen(
            key.command("-m", NAME),
            # If a module records the working directory, this path identifies it: no script is here.
            cwd=SITE,
            env=env | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(control, order),
            start_new_session=True,
        )
    except OSError as error:
        raise NoTemplate(f"its interpreter cannot be started: {error}") from error


async def _receive_report(control: socket.socket, order: int, process: subprocess.Popen[bytes]) -> Report:
    """Wait for its report. Raises `NoTemplate` if there will be none."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            ready = await asyncio.get_running_loop().sock_recv(control, 16)
        if not ready:
            raise NoTemplate(f"its interpreter ended: {_read_available(streams[1])[-500:]}")
    except TimeoutError:
        raise NoTemplate(f"it was not ready within {READY_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise NoTemplate(f"the connection to it failed: {error}") from error
    finally:
        for stream in streams:
            stream.close()
    report = msgspec.json.decode(os.pread(order, os.fstat(order).st_size, 0), type=Report)
    if report.why:
        raise NoTemplate(report.why, report.culprit)
    if report.pid != process.pid and not os.readlink(f"/proc/{process.pid}/exe").endswith("/dash"):
        # The shim prints and exits as dash would after a command killed by a signal; other shells differ.
        raise NoTemplate("sh is not dash, but a shell that stays while its command runs")
    return report


def _read_available(pipe: IO[bytes]) -> str:
    """Read what is in a pipe without waiting for its end, which a child of the interpreter may hold open."""
    os.set_blocking(pipe.fileno(), False)
    try:
        return os.read(pipe.fileno(), 2**16).decode(errors="replace")
    except BlockingIOError:
        return ""


async def _read_byte(pipe: int) -> bytes:
    """The first byte from a pipe; empty if it is closed or nothing comes in time."""
    return os.read(pipe, 1) if await wait_until_readable(pipe, START_S) else b""
