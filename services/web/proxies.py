"""Where a request comes from: what a proxy says of it counts only if the settings name that proxy."""

from __future__ import annotations

import ipaddress

from starlette.requests import HTTPConnection

from services.kit.hosts_named import listed, parsed
from services.kit.settings import BadSettings

IPV6_SITE = 64
"""Bits of an IPv6 address that belong to one site: whoever has one address there has all of them."""


class Proxies:
    """The reverse proxies in front of this gateway."""

    def __init__(self, text: str) -> None:
        """Addresses and networks, separated by commas; raises `BadSettings`."""
        try:
            self._networks = [ipaddress.ip_network(one, strict=False) for one in listed(text)]
        except ValueError as error:
            raise BadSettings(f"STEADFAST_TRUSTED_PROXIES: {error}") from None

    def __bool__(self) -> bool:
        return bool(self._networks)

    def address_of(self, connection: HTTPConnection) -> str:
        """The client's address: the last one in `X-Forwarded-For` that no proxy of ours has."""
        address = connection.client.host if connection.client is not None else ""
        if not self._has(address):
            return address
        for one in reversed(_forwarded(connection)):
            address = one
            if not self._has(address):
                break
        return address

    def is_encrypted(self, connection: HTTPConnection) -> bool:
        """Whether the client itself speaks HTTPS, to us or to a proxy of ours."""
        if connection.url.scheme == "https":
            return True
        behind = connection.client is not None and self._has(connection.client.host)
        return behind and connection.headers.get("x-forwarded-proto", "").lower() == "https"

    def _has(self, text: str) -> bool:
        address = parsed(text)
        return address is not None and any(address in network for network in self._networks)


def site_of(address: str) -> str:
    """What is counted as one client: an IPv4 address, or the network of an IPv6 address."""
    known = parsed(address)
    if not isinstance(known, ipaddress.IPv6Address):
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, IPV6_SITE), strict=False))


def _forwarded(connection: HTTPConnection) -> list[str]:
    """The addresses that proxies added, the last one by the nearest; what is no address ends them."""
    found: list[str] = []
    for one in reversed(listed(",".join(connection.headers.getlist("x-forwarded-for")))):
        if parsed(one) is None:
            break
        found.append(one)
    return found[::-1]
