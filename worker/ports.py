"""Four ports for each allocation on a host (launchers spec, section 11; core API spec, section 3).

Two jobs with the same ports do not fail, they hang.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection

import msgspec

BASES = (12350, 12360, 12365, 29400)
LAST = 65535


class Ports(msgspec.Struct, frozen=True):
    """Named after the variables that they become."""

    dtrain_ssh: int
    comm_1: int
    comm_2: int
    c10d: int

    def all(self) -> tuple[int, int, int, int]:
        """All four."""
        return (self.dtrain_ssh, self.comm_1, self.comm_2, self.c10d)


class NoPort(ValueError):
    """Every port above a base is taken."""


def choose(taken: Collection[int], is_free: Callable[[int], bool]) -> Ports:
    """The lowest ports from each base on that no other allocation has and that are free here."""
    chosen: list[int] = []
    for base in BASES:
        free = (p for p in range(base, LAST) if p not in taken and p not in chosen and is_free(p))
        port = next(free, None)
        if port is None:
            raise NoPort(f"no free port from {base} on; end some of what listens on this host")
        chosen.append(port)
    return Ports(*chosen)


def is_free(port: int) -> bool:
    """Whether a script could listen on a port of this host, on all addresses, now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
