"""HTTP to addresses that people name: only such as may be asked, and no further than there.

A name is resolved once, what it means is checked, and that very address is connected to: a name that means
something else a moment later gains nothing.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import threading
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util import connection as low

from services.kit.addresses import Addresses

MOST_SAID_BYTES = 64 << 10
"""Of an answer that is an error: the client of S3 reads all of it."""


def pool_manager(
    addresses: Addresses,
    timeout: urllib3.Timeout,
    retries: urllib3.Retry,
    within_s: float = 0.0,
    context: ssl.SSLContext | None = None,
) -> urllib3.PoolManager:
    """A client's connections; a refusal is an `AddressRefused` of the request.

    A connection lasts for `within_s` seconds at most, 0 for any time: timeouts are for each byte.
    """

    def connect(made: HTTPConnection) -> socket.socket:
        found = _connected(made, addresses)
        if within_s:
            limit = threading.Timer(within_s, _cut, (made,))
            limit.daemon = True
            limit.start()
        return found

    def answer(made: Any) -> Any:
        # It forgets its socket when there is to be but one answer.
        made.held = made.sock
        return _bounded(super(type(made), made).getresponse())

    class Plain(HTTPConnection):
        _new_conn = connect
        getresponse = answer

    class Secure(HTTPSConnection):
        _new_conn = connect
        getresponse = answer

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    found = urllib3.PoolManager(timeout=timeout, retries=retries, ssl_context=context)
    found.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return found


def _cut(made: Any) -> None:
    held = made.sock or getattr(made, "held", None)
    with contextlib.suppress(OSError):
        if held is not None:
            held.shutdown(socket.SHUT_RDWR)


def _bounded(answer: urllib3.HTTPResponse) -> urllib3.HTTPResponse:
    """An answer, of which no more is kept than a store has to say; raises an error of urllib3."""
    if answer.status < 300:
        return answer
    said = answer.read(MOST_SAID_BYTES + 1, decode_content=False)
    if len(said) > MOST_SAID_BYTES:
        answer.close()
        raise urllib3.exceptions.ProtocolError(f"the answer has more than {MOST_SAID_BYTES} bytes")
    return urllib3.HTTPResponse(
        io.BytesIO(said), answer.headers, answer.status, preload_content=False, decode_content=False
    )


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
