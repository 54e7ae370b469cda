"""Watching processes that are not children, and the address where they report."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

WAIT = "WAIT"
_PROC = Path("/proc")
_DEAD = "ZTXt"
"""States of a process that does not run: zombie, stopped, dead, traced."""


def connect(address: str) -> socket.socket:
    """Connect to a server."""
    family, place = _place(address)
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.connect(place)
    return connection


def listen(address: str) -> socket.socket:
    """Open a server socket. A socket file left by an earlier server is removed."""
    family, place = _place(address)
    if isinstance(place, str):
        Path(place).unlink(missing_ok=True)
    listener = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET:
        # A restarted trial would otherwise find its port taken for a minute.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(place)
    listener.listen()
    return listener


def notes_of(address: str) -> Path | None:
    """Return the file in which workers note how they ended: beside the socket; None for a TCP address."""
    return Path(f"{address}.ends") if "/" in address else None


def _place(address: str) -> tuple[int, str | tuple[str, int]]:
    if "/" in address:
        return socket.AF_UNIX, address
    host, colon, port = address.rpartition(":")
    if not port.isdigit():
        raise ValueError(f"{address!r} is not an address: give a path with a slash, host:port, or a port")
    return socket.AF_INET, (host if colon else "127.0.0.1", int(port))


def signal_named(name: str) -> signal.Signals | None:
    """Parse a signal option. Returns None for WAIT; raises ValueError for an unknown signal."""
    if name == WAIT:
        return None
    try:
        return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    except KeyError:
        raise ValueError(f"{name!r} is not a signal; write one such as SIGTERM, or WAIT") from None


def is_running(pid: int) -> bool:
    """Whether a process exists and is neither stopped nor a zombie."""
    if not _PROC.exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True
    status = _status(pid)
    return status is not None and status[0] not in _DEAD


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process."""
    parents: dict[int, list[int]] = {}
    for child, parent in _all():
        parents.setdefault(parent, []).append(child)
    below, ahead = [], list(parents.get(pid, ()))
    while ahead:
        below.append(ahead.pop())
        ahead += parents.get(below[-1], ())
    return below


def _all() -> Iterator[tuple[int, int]]:
    for entry in _PROC.iterdir() if _PROC.exists() else ():
        if entry.name.isdigit() and (status := _status(int(entry.name))) is not None:
            yield int(entry.name), int(status[1])


def _status(pid: int) -> list[str] | None:
    """Return state and parent. Parsed after the command name, which may contain spaces and parentheses."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[:2]
