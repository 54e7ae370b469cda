"""Host addresses in settings and headers."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def split_list(text: str) -> list[str]:
    """Split a comma-separated list."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def parse_address(text: str) -> Address | None:
    """Parse a numeric address; None for names and everything else."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a listener on this address can be reached from this machine only."""
    address = parse_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)
