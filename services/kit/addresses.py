"""Restricts which user-named addresses the platform contacts (docs/decisions/0031).

A configuration may name the address of an object store. A process inside the cluster's network must not let a
user reach addresses they could not reach themselves. It contacts the stores of its settings and public
addresses, and others only if a setting allows them.
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
    """An address that must not be contacted. The text names it and says what to do."""


class Addresses:
    """The addresses that may be contacted."""

    def __init__(self, own: Iterable[str | None] = (), allowed: str = "") -> None:
        """`own` are the URLs of stores in the settings.

        `allowed` is a comma-separated list of networks and `host[:port]`. Raises ValueError.
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

    def is_configured(self, url: str | None) -> bool:
        """Whether an address is that of a store in the settings.

        No address means the default store, which is.
        """
        return not url or endpoint(url) in self._own

    def is_named(self, url: str) -> bool:
        """Whether the settings themselves name an address, so that it need not be looked up."""
        host, port = endpoint(url)
        if (host, port) in self._own or (host, port) in self._hosts or (host, None) in self._hosts:
            return True
        try:
            ip_address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(ip_address in network for network in self._networks)

    def is_allowed(self, host: str, port: int, address: str) -> bool:
        """Whether a host that currently resolves to this address may be contacted."""
        host = host.lower()
        if (host, port) in self._own or (host, port) in self._hosts or (host, None) in self._hosts:
            return True
        # A link-local IPv6 address ends with its interface.
        ip_address = ipaddress.ip_address(address.partition("%")[0])
        return is_public(ip_address) or any(ip_address in network for network in self._networks)

    def refusal(self, host: str) -> AddressRefused:
        """Build the error for the user who named the host.

        It reveals nothing about internal name resolution.
        """
        return AddressRefused(
            f"{host} is not contacted from here: it is not a public address. The cluster's operator can "
            f"allow it with {SETTING}"
        )


def endpoint(url: str) -> tuple[str, int]:
    """Return host and port of a URL. Raises ValueError."""
    parsed = urlsplit(url)
    if not parsed.hostname:
        raise ValueError(f"'{url}' is not an address of the form http://host[:port]")
    return parsed.hostname, parsed.port or DEFAULT_PORTS.get(parsed.scheme, 0)


def is_public(address: Address) -> bool:
    """Whether an address is on the public internet, including one embedded in IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        # A private IPv4 address in one of these forms would otherwise pass as a public IPv6 one.
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def check_keys(storage: Mapping[str, Any], cluster: Mapping[str, Any] | None, addresses: Addresses) -> None:
    """Raise `AddressRefused` if the platform's own keys would be sent to a foreign store.

    If a configuration names no keys, they come from the cluster's storage or this process's environment.
    """
    own = {None, "", (cluster or {}).get("access_key")}
    if storage.get("access_key") in own and not addresses.is_configured(storage.get("endpoint_url")):
        raise AddressRefused(
            f"{storage['endpoint_url']} is not a store of the cluster: name access_key and secret_key for it"
        )
