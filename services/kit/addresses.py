"""Whom the platform asks over the network because a person named them (docs/decisions/0031).

A configuration may name the address of an object store. A process that stands among the cluster's own parts
must not become the hand of somebody who does not: it asks the stores of its settings and public addresses,
and others only if a setting allows them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

SETTING = "STEADFAST_REACHABLE"
DEFAULT_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(ValueError):
    """An address that is not asked; the text names it, and what to do."""


class Addresses:
    """Who may be asked."""

    def __init__(self, own: Iterable[str | None] = (), allowed: str = "") -> None:
        """`own`: URLs of the settings' own stores; `allowed`: networks and `host[:port]`, with commas.

        Raises ValueError.
        """
        self._own = {endpoint(url) for url in own if url}
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self._hosts: set[tuple[str, int | None]] = set()
        for entry in (part.strip() for part in allowed.split(",")):
            self._allow(entry)

    def _allow(self, entry: str) -> None:
        if "/" in entry:
            self._networks.append(ipaddress.ip_network(entry))
        elif entry:
            parsed = urlsplit(f"//{entry}")
            self._hosts.add((parsed.hostname or entry, parsed.port))

    def is_own(self, url: str | None) -> bool:
        """Whether an address is that of a store of the settings; none is the one that needs no address."""
        return not url or endpoint(url) in self._own

    def may(self, host: str, port: int, address: str) -> bool:
        """Whether a host, which has this address just now, may be asked."""
        host = host.lower()
        if (host, port) in self._own or (host, port) in self._hosts or (host, None) in self._hosts:
            return True
        found = ipaddress.ip_address(address.partition("%")[0])
        return is_public(found) or any(found in network for network in self._networks)

    def refusal(self, host: str) -> AddressRefused:
        """For whoever named the host. It tells nothing that this network's names tell."""
        return AddressRefused(
            f"{host} is not contacted from here: it is not a public address. The cluster's operator can "
            f"allow it with {SETTING}"
        )


def endpoint(url: str) -> tuple[str, int]:
    """Host and port of an address; raises ValueError."""
    parsed = urlsplit(url)
    if not parsed.hostname:
        raise ValueError(f"'{url}' is no address of the form http://host[:port]")
    return parsed.hostname, parsed.port or DEFAULT_PORTS.get(parsed.scheme, 0)


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public network, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def check_keys(storage: Mapping[str, Any], cluster: Mapping[str, Any] | None, addresses: Addresses) -> None:
    """Raise `AddressRefused` where the platform's own keys would be used with a store of somebody else.

    Where a configuration names none, they come from the cluster's storage or this process's surroundings.
    """
    own = {None, "", (cluster or {}).get("access_key")}
    if storage.get("access_key") in own and not addresses.is_own(storage.get("endpoint_url")):
        raise AddressRefused(
            f"{storage['endpoint_url']} is no store of the cluster: name access_key and secret_key for it"
        )
