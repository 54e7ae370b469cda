"""The address under which other hosts reach this one."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def source_address_for(host: str, port: int) -> str:
    """The address of this host on the route to another one; loopback if there is no route.

    Sends nothing: connecting a datagram socket only looks up the route.
    """
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return LOOPBACK
