"""Under which address other hosts reach this one."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def towards(host: str, port: int) -> str:
    """The address of this host on the way to another one; loopback where nothing leads there.

    Nothing is sent: connecting a datagram socket only looks the way up.
    """
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return LOOPBACK
