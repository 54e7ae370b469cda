"""Starts services as forks of one process, so that shared modules are loaded only once.

If that is not possible (not on Linux, an environment variable that an interpreter reads at startup, or a
server that has ended), a service is started like any other program.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import setproctitle

from services.kit.host_processes import die_with_parent
from services.kit.readable import wait_until_readable
from services.local.fork_server import REQUEST_BYTES, SOCKET_VARIABLE, serve

FORK_TIMEOUT_S = 60.0
"""Maximum wait in seconds for a service to be forked."""
CAN_FORK = hasattr(os, "pidfd_open")
"""Whether the system has process descriptors."""
STARTUP_PREFIXES = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG")
"""Prefixes of variables that an interpreter reads at startup, so that setting them in a fork is too late."""


class NotForked(Exception):
    """The service must be started in another way. The text says why."""


class Forked:
    """A child of the server, identified by a process descriptor and thus never mistaken for another."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._on_end)

    def _on_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended.set()

    @property
    def returncode(self) -> int | None:
        """None while it runs, then 0: its real exit status is unknown."""
        return 0 if self._ended.is_set() else None

    async def wait(self) -> int:
        """Wait until the process has ended."""
        await self._ended.wait()
        return 0

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal. Raises `ProcessLookupError` if the process has ended."""
        if self._ended.is_set():
            raise ProcessLookupError(self.pid)
        signal.pidfd_send_signal(self._descriptor, number)


class _ForkedServer:
    """The part of `subprocess.Popen` that the client uses, for a server that is a fork of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = False

    def poll(self) -> int | None:
        """None while it runs, then 0: its exit status is not used."""
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for its end."""
        return self._wait(0)

    def kill(self) -> None:
        """Send SIGKILL."""
        # Until it was waited for, its pid is not given to another process.
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, options: int) -> int | None:
        self._ended = self._ended or os.waitpid(self.pid, options)[0] == self.pid
        return 0 if self._ended else None


class ForkClient:
    """The client of the fork server.

    Without `fork_server`, it starts the server with the first service. It starts one again if it has ended.
    """

    def __init__(self, home: Path, modules: Sequence[str], log: Path) -> None:
        """`home` appears on the command lines of the server and its forks."""
        self._home = home
        self._modules = modules
        self._log = log
        self._process: subprocess.Popen[bytes] | _ForkedServer | None = None
        self._control: socket.socket | None = None

    def fork_server(self) -> None:
        """Fork the server from this process, with which it then shares what both have loaded.

        Call it before this process has threads, connections or an event loop. Returns in this process alone;
        a service, which is a fork of the server, exits here after its end.
        """
        if not CAN_FORK:
            return
        # A collection would copy what is shared.
        gc.freeze()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with self._log.open("ab") as output:
            this = os.getpid()
            try:
                pid = os.fork()
            except OSError:
                # No process is free just now. The first service that is started tries again.
                ours.close()
                theirs.close()
                return
            if pid == 0:
                die_with_parent(this)
                ours.close()
                with open(os.devnull, "rb") as nothing:
                    os.dup2(nothing.fileno(), 0)
                for stream in (1, 2):
                    os.dup2(output.fileno(), stream)
        if pid == 0:
            setproctitle.setproctitle(f"steadfast fork-server {self._home}")
            serve(theirs, str(self._home), self._modules)
            sys.exit()
        theirs.close()
        ours.setblocking(False)
        self._control, self._process = ours, _ForkedServer(pid)

    def forkable_module(self, command: Sequence[str], environment: Mapping[str, str]) -> str:
        """Return the module that a command runs if it can be forked, else an empty string."""
        if not CAN_FORK or list(command[:-1]) != [sys.executable, "-P", "-m"]:
            return ""
        if command[-1] not in self._modules or _startup_variables(environment) != _startup_variables(
            os.environ
        ):
            return ""
        return command[-1]

    async def start(self, module: str, environment: Mapping[str, str], output: IO[bytes]) -> Forked:
        """Start a process that runs a module, with this environment and output. Raises `NotForked`."""
        request = json.dumps({"module": module, "environment": dict(environment)}).encode()
        if len(request) > REQUEST_BYTES:
            raise NotForked(f"its environment has {len(request):,} bytes")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            ours.setblocking(False)
            with theirs:
                try:
                    socket.send_fds(self._ensure_server(), [request], [output.fileno(), theirs.fileno()])
                except BlockingIOError as error:
                    raise NotForked("the server does not keep up") from error
                except OSError as error:
                    self.end()
                    raise NotForked(str(error)) from error
            return await _receive_process(ours)

    def _ensure_server(self) -> socket.socket:
        """Return the socket to the server, starting it if necessary."""
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._control is None:
            self._control, self._process = self._start()
        return self._control

    def _start(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        name = "services.local.fork_server"
        with theirs, self._log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", name, str(self._home), *self._modules],
                env=dict(os.environ) | {SOCKET_VARIABLE: str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
                preexec_fn=die_with_parent,
            )
        # A server that hangs must not hang the supervisor, which would then notice nothing of the other
        # programs.
        ours.setblocking(False)
        return ours, process

    def end(self) -> None:
        """Kill the server and its remaining forks."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
        self._control = self._process = None


def _startup_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(STARTUP_PREFIXES)}


async def _receive_process(ours: socket.socket) -> Forked:
    if not await wait_until_readable(ours.fileno(), FORK_TIMEOUT_S):
        raise NotForked(f"no process within {FORK_TIMEOUT_S:.0f} s")
    try:
        payload, descriptors, _, _ = socket.recv_fds(ours, 64, 1)
    except OSError as error:
        raise NotForked(str(error)) from error
    if not descriptors:
        raise NotForked("its process has ended at once")
    return Forked(int(payload), descriptors[0])
