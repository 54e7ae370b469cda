"""Four ports for each allocation, the same on all of its nodes (launchers spec, 11; core API spec, 3).

Two jobs with the same ports do not fail, they hang. So ports come in blocks of four, numbered by the position
of the assignment in the log: every node computes the same block without asking, and two allocations share one
only if thousands of events lie between them. Each cluster starts at another block, because two new clusters
on one host would otherwise collide.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Callable, Collection

import msgspec

from det_contracts.ids import TASK_PORTS

FIRST = TASK_PORTS.start
BLOCKS = len(TASK_PORTS) // 4
"""The blocks end below 32768, where systems begin to assign ports at random."""


class Ports(msgspec.Struct, frozen=True):
    """The ports, named after the variables that hold them."""

    dtrain_ssh: int
    comm_1: int
    comm_2: int
    c10d: int

    def all(self) -> tuple[int, int, int, int]:
        """All four ports."""
        return (self.dtrain_ssh, self.comm_1, self.comm_2, self.c10d)


class NoFreePorts(ValueError):
    """Every block is taken."""


def block_number(position: int, cluster_id: str) -> int:
    """The number that selects the block of an assignment of this cluster."""
    return position + zlib.crc32(cluster_id.encode())


def block(position: int) -> Ports:
    """The block of ports for a number."""
    first = FIRST + 4 * (position % BLOCKS)
    return Ports(first, first + 1, first + 2, first + 3)


def choose(position: int, taken: Collection[int], is_free: Callable[[int], bool]) -> Ports:
    """Ports for an allocation on one node: its own block, or the next one that is unused and free here."""
    for step in range(BLOCKS):
        ports = block(position + step)
        if all(port not in taken and is_free(port) for port in ports.all()):
            return ports
    raise NoFreePorts(
        f"no four free ports from {FIRST} to {FIRST + 4 * BLOCKS - 1}; end some of what listens on this host"
    )


def is_free(port: int) -> bool:
    """Whether a script could listen on this port now, on all addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
