"""Addresses of hosts, as settings and headers hold them."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [one.strip() for one in text.split(",") if one.strip()]


def parsed(text: str) -> Address | None:
    """A numeric address; None for names and everything else."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether what listens there is reached from this machine alone."""
    address = parsed(host)
    return host == "localhost" or (address is not None and address.is_loopback)
