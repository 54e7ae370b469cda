"""Starts a rank from an interpreter with preloaded packages, if the run's worker offers one.

The server side is `worker.warm.inside.ranks`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Sequence

ADDRESS = "DET_RANK_SERVER"
STARTED = b"+"
ANSWER_S = 10.0


class Rank:
    """A process started by another process, with the required part of `subprocess.Popen`'s interface."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection = connection
        self._code: int | None = None
        self.pid = pid

    def poll(self) -> int | None:
        """Return the exit code as in Popen, or None while it runs."""
        return self._hear(0.0)

    def wait(self) -> int:
        """Wait for the process and return its exit code."""
        while True:
            code = self._hear(None)
            if code is not None:
                return code

    def send_signal(self, number: int) -> None:
        """Send a signal if the process is still running."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _hear(self, within_s: float | None) -> int | None:
        if self._code is None:
            self._connection.settimeout(within_s)
            try:
                message = self._connection.recv(32)
            except (TimeoutError, BlockingIOError):
                return None
            except OSError:
                message = b""
            # No message: the process that started the rank is gone, and the rank with it.
            self._code = int(message) if message else -signal.SIGKILL
        return self._code


def start(argv: Sequence[str], output: tuple[int, int]) -> Rank | None:
    """Start a command with this process's environment. Returns None if it must be started the normal way."""
    # Removed, so that processes of the script are started the normal way.
    address = os.environ.pop(ADDRESS, "")
    if not address:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        reply = _request_process(connection, address, argv, output)
    except OSError:
        reply = b""
    if reply[:1] == STARTED:
        return Rank(connection, int(reply[1:]))
    connection.close()
    return None


def _request_process(
    connection: socket.socket, address: str, argv: Sequence[str], output: tuple[int, int]
) -> bytes:
    connection.settimeout(ANSWER_S)
    # An abstract socket, which leaves no file behind.
    connection.connect(f"\0{address}")
    # Passed in a file, because an environment may exceed the message size limit.
    order = os.memfd_create("rank")
    try:
        request = {"argv": list(argv), "cwd": os.getcwd(), "env": dict(os.environ)}
        os.pwrite(order, json.dumps(request).encode(), 0)
        socket.send_fds(connection, [b"rank"], [order, *output])
        return connection.recv(32)
    finally:
        os.close(order)
