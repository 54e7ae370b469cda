"""Determines where a request comes from. Proxy headers count only from proxies named in the settings."""

from __future__ import annotations

import ipaddress

from starlette.requests import HTTPConnection

from services.kit.host_addresses import parse_address, split_list
from services.kit.settings import BadSettings

IPV6_SITE = 64
"""Bits of an IPv6 address that identify a site: a host with one address there can use all of them."""


class Proxies:
    """The reverse proxies in front of this gateway."""

    def __init__(self, text: str) -> None:
        """Parse comma-separated addresses and networks. Raises `BadSettings`."""
        try:
            self._networks = [ipaddress.ip_network(network, strict=False) for network in split_list(text)]
        except ValueError as error:
            raise BadSettings(f"STEADFAST_TRUSTED_PROXIES: {error}") from None

    def __bool__(self) -> bool:
        return bool(self._networks)

    def address_of(self, connection: HTTPConnection) -> str:
        """Return the client's address: the last one in `X-Forwarded-For` that is not one of our proxies."""
        address = connection.client.host if connection.client is not None else ""
        if not self._is_proxy(address):
            return address
        # From the right: each proxy appends what it has seen, and everything to the left may be invented by
        # the client.
        for forwarded_address in reversed(_forwarded(connection)):
            address = forwarded_address
            if not self._is_proxy(address):
                break
        return address

    def is_encrypted(self, connection: HTTPConnection) -> bool:
        """Whether the client itself uses HTTPS, to us or to one of our proxies."""
        if connection.url.scheme == "https":
            return True
        is_via_proxy = connection.client is not None and self._is_proxy(connection.client.host)
        return is_via_proxy and connection.headers.get("x-forwarded-proto", "").lower() == "https"

    def _is_proxy(self, text: str) -> bool:
        address = parse_address(text)
        return address is not None and any(address in network for network in self._networks)


def site_of(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address."""
    parsed = parse_address(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_SITE), strict=False))


def _forwarded(connection: HTTPConnection) -> list[str]:
    """Return the addresses added by proxies, nearest last, after the last malformed one."""
    addresses: list[str] = []
    for address in reversed(split_list(",".join(connection.headers.getlist("x-forwarded-for")))):
        if parse_address(address) is None:
            break
        addresses.append(address)
    return addresses[::-1]
