"""HTTP to addresses that people name: only such as may be asked, and no further than there.

A name is resolved once, what it means is checked, and that very address is connected to: a name that means
something else a moment later gains nothing.
"""

from __future__ import annotations

import socket

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util import connection as low

from services.kit.addresses import Addresses


def pool_manager(
    addresses: Addresses, timeout: urllib3.Timeout, retries: urllib3.Retry
) -> urllib3.PoolManager:
    """A client's connections; a refusal is an `AddressRefused` of the request."""

    def connect(made: HTTPConnection) -> socket.socket:
        return _connected(made, addresses)

    class Plain(HTTPConnection):
        _new_conn = connect

    class Secure(HTTPSConnection):
        _new_conn = connect

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    found = urllib3.PoolManager(timeout=timeout, retries=retries)
    found.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return found


def _connected(made: HTTPConnection, addresses: Addresses) -> socket.socket:
    host, port = made.host.strip("[]"), made.port
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise urllib3.exceptions.NewConnectionError(made, f"{host} is not known") from error
    allowed = [str(one[4][0]) for one in known if addresses.may(host, port, str(one[4][0]))]
    if not allowed:
        raise addresses.refusal(host)
    failure: OSError | None = None
    for address in dict.fromkeys(allowed):
        try:
            return low.create_connection(
                (address, port), made.timeout, made.source_address, made.socket_options
            )
        except OSError as error:
            failure = error
    raise urllib3.exceptions.NewConnectionError(made, f"{host} does not answer") from failure
