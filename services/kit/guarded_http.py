"""HTTP to user-named addresses, limited to those that may be contacted.

A name is resolved once, the result is checked, and exactly that address is connected to, so a name that
resolves differently a moment later gains nothing.
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

MAX_WHOLE_BYTES = 64 << 10
"""Maximum size of what the S3 client reads completely: errors, and all answers but an object's content."""


def pool_manager(
    addresses: Addresses | None,
    timeout: urllib3.Timeout,
    retries: urllib3.Retry,
    within_s: float = 0.0,
    context: ssl.SSLContext | None = None,
) -> urllib3.PoolManager:
    """Return a client whose requests raise `AddressRefused` for forbidden addresses; None: for none.

    A connection lasts at most `within_s` seconds (0: no limit), because the timeouts apply to each read only.
    """

    def connect(made: HTTPConnection) -> socket.socket:
        connected_socket = _connect(made, addresses)
        if within_s:
            limit = threading.Timer(within_s, _shut_down, (made,))
            limit.daemon = True
            limit.start()
        return connected_socket

    def send(made: Any, *request: Any, preload_content: bool = True, **options: Any) -> None:
        # It would read the answer completely before anybody could limit it.
        made.is_read_whole = preload_content
        super(type(made), made).request(*request, preload_content=False, **options)

    def answer(made: Any) -> Any:
        # It drops its socket when the response is the last one, so keep a reference.
        made.held = made.sock
        answer = super(type(made), made).getresponse()
        return _whole(answer) if made.is_read_whole or answer.status >= 300 else answer

    class Plain(HTTPConnection):
        _new_conn = connect
        request = send
        getresponse = answer

    class Secure(HTTPSConnection):
        _new_conn = connect
        request = send
        getresponse = answer

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    manager = urllib3.PoolManager(timeout=timeout, retries=retries, ssl_context=context)
    manager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return manager


def _shut_down(made: Any) -> None:
    held = made.sock or getattr(made, "held", None)
    with contextlib.suppress(OSError):
        if held is not None:
            held.shutdown(socket.SHUT_RDWR)


def _whole(answer: urllib3.HTTPResponse) -> urllib3.HTTPResponse:
    """Read a response up to the limit. Raises an error of urllib3 if it is longer."""
    content = answer.read(MAX_WHOLE_BYTES + 1, decode_content=False)
    if len(content) > MAX_WHOLE_BYTES:
        answer.close()
        raise urllib3.exceptions.ProtocolError(f"the answer has more than {MAX_WHOLE_BYTES} bytes")
    return urllib3.HTTPResponse(
        io.BytesIO(content), answer.headers, answer.status, preload_content=False, decode_content=False
    )


def _connect(made: HTTPConnection, addresses: Addresses | None) -> socket.socket:
    host, port = made.host.strip("[]"), made.port
    try:
        address_entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise urllib3.exceptions.NewConnectionError(made, f"{host} cannot be resolved") from error
    allowed = [str(entry[4][0]) for entry in address_entries]
    if addresses is not None:
        allowed = [address for address in allowed if addresses.is_allowed(host, port, address)]
        if not allowed:
            raise addresses.refusal(host)
    failure: OSError | None = None
    # A name may have IPv6 addresses that this host cannot reach.
    for address in dict.fromkeys(allowed):
        try:
            return low.create_connection(
                (address, port), made.timeout, made.source_address, made.socket_options
            )
        except OSError as error:
            failure = error
    raise urllib3.exceptions.NewConnectionError(made, f"{host} does not answer") from failure
