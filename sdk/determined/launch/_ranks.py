"""Starts a rank from an interpreter that has its packages loaded, where the worker of the run offers one.

The other side is `worker.warm.inside.ranks`.
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
    """A process of somebody else's, with as much of `subprocess.Popen` as is needed."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self._connection = connection
        self._code: int | None = None
        self.pid = pid

    def poll(self) -> int | None:
        """Its exit code as Popen reports it; None while it runs."""
        return self._hear(0.0)

    def wait(self) -> int:
        """Its exit code, when it has ended."""
        while True:
            code = self._hear(None)
            if code is not None:
                return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
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
            # Silence: who started it is gone, and with that the rank.
            self._code = int(message) if message else -signal.SIGKILL
        return self._code


def start(argv: Sequence[str], output: tuple[int, int]) -> Rank | None:
    """Start a command; None where it is to be started as ever. Its environment is this process's."""
    address = os.environ.pop(ADDRESS, "")
    if not address:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        reply = _asked(connection, address, argv, output)
    except OSError:
        reply = b""
    if reply[:1] == STARTED:
        return Rank(connection, int(reply[1:]))
    connection.close()
    return None


def _asked(connection: socket.socket, address: str, argv: Sequence[str], output: tuple[int, int]) -> bytes:
    connection.settimeout(ANSWER_S)
    connection.connect(f"\0{address}")
    # In a file: an environment may be larger than a message.
    order = os.memfd_create("rank")
    try:
        request = {"argv": list(argv), "cwd": os.getcwd(), "env": dict(os.environ)}
        os.pwrite(order, json.dumps(request).encode(), 0)
        socket.send_fds(connection, [b"rank"], [order, *output])
        return connection.recv(32)
    finally:
        os.close(order)
