"""Ranges of objects as streams, over connections that are reused between ranges.

The overhead of the store's client and `http.client` exceeds the cost of transferring a small object. Requests
are therefore written by hand, and the one expected response is parsed by hand; all other responses are left
to `http.client`. Imported on first use, together with the client.
"""

import collections
import contextlib
import http.client
import os
import socket
import ssl
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

import certifi

from determined.storage.bucket import Body, Broken, Origin
from determined.storage.s3_answers import checked, expected, parsed
from determined.storage.s3_signing import Signer

if TYPE_CHECKING:
    from minio import Minio
    from minio.credentials.providers import Provider

_CONNECT_S = 10.0
SILENCE_S = 120.0
"""A store that sends nothing for so long is given up."""
_HEAD_BYTES = 16 << 10
_HEAD_END = b"\r\n\r\n"


class _Plain:
    """The requested bytes, read directly from a connection."""

    def __init__(self, connection: "_Connection", begun: memoryview, length: int, origin: Origin) -> None:
        self._connection = connection
        self._begun = begun
        self.origin = origin
        self.left = length

    def readinto(self, buffer: memoryview, /) -> int:
        buffer = buffer[: self.left]
        count = min(len(self._begun), len(buffer))
        buffer[:count] = self._begun[:count]
        self._begun = self._begun[count:]
        while count < len(buffer) and (more := self._connection.receive(buffer[count:])):
            count += more
        self.left -= count
        return count


class _Parsed:
    """Any other response."""

    left = 1
    """Never 0, so the connection is not reused: leftover data would be taken for the next response."""

    def __init__(self, response: http.client.HTTPResponse, origin: Origin) -> None:
        self._response = response
        self.origin = origin

    def readinto(self, buffer: memoryview, /) -> int:
        with _NETWORK:
            return self._response.readinto(buffer)


class _Connection:
    def __init__(self, url: SplitResult, trust: ssl.SSLContext | None) -> None:
        host = url.hostname or ""
        with _NETWORK:
            made = socket.create_connection((host, url.port or (443 if trust else 80)), _CONNECT_S)
            # Small requests go out at once, instead of waiting for the acknowledgement of the one before.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if trust:
                made = trust.wrap_socket(made, server_hostname=host)
                made.settimeout(SILENCE_S)
            else:
                _wait_in_the_kernel(made)
        self._socket = made
        # Block until the buffer is full, so that the interpreter lock is released only once.
        self._flags = 0 if trust else getattr(socket, "MSG_WAITALL", 0)
        self._head = memoryview(bytearray(_HEAD_BYTES))

    def close(self) -> None:
        self._socket.close()

    def receive(self, buffer: memoryview) -> int:
        with _NETWORK:
            return self._socket.recv_into(buffer, 0, self._flags)

    def get(self, key: str, url: SplitResult, offset: int, length: int) -> _Plain | _Parsed:
        request = (
            f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\nAccept-Encoding: identity\r\n"
            f"Range: bytes={offset}-{offset + length - 1}\r\n\r\n"
        )
        with _NETWORK:
            self._socket.sendall(request.encode())
            come, head_end = self._answer()
            begun = self._head[:come]
            origin = expected(bytes(begun[:head_end]), offset, length) if head_end >= 0 else None
            if origin:
                return _Plain(self, begun[head_end + len(_HEAD_END) :], length, origin)
            if head_end < 0 and come < _HEAD_BYTES:
                raise Broken("the connection was lost before a response arrived")
            response = parsed(bytes(begun), self._socket)
            return _Parsed(response, checked(response, key, offset, length))

    def _answer(self) -> tuple[int, int]:
        """Receive the start of a response. Returns the bytes received and where the head ends, or -1."""
        come, end = 0, -1
        while end < 0 and come < _HEAD_BYTES:
            more = self._socket.recv_into(self._head[come:])
            if not more:
                break
            end = bytes(self._head[: come + more]).find(_HEAD_END)
            come += more
        return come, end


def _wait_in_the_kernel(made: socket.socket) -> None:
    """Set timeouts in the kernel, so that reads need no preceding poll."""
    if os.name != "posix":
        return made.settimeout(SILENCE_S)
    made.settimeout(None)
    limit = struct.pack("@ll", int(SILENCE_S), 0)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


class Streams:
    """GET requests for the objects of a bucket. Safe to use from several threads."""

    def __init__(self, client: "Minio", bucket: str, provider: "Provider") -> None:
        self._signer = Signer(client, bucket, provider)
        self._idle: collections.deque[_Connection] = collections.deque()

    def close(self) -> None:
        """Close all idle connections."""
        while connection := self._taken():
            connection.close()

    @contextlib.contextmanager
    def get(self, key: str, offset: int, length: int) -> Iterator[Body]:
        """Request a range of an object. Raises `StoreError`."""
        url = self._signer.address(key)
        connection = self._taken() or _Connection(url, self._trust if url.scheme == "https" else None)
        try:
            body = connection.get(key, url, offset, length)
            yield body
        except BaseException as error:
            connection.close()
            if isinstance(error, Broken):
                # Connections that were idle for as long are probably closed as well.
                self.close()
                if key not in str(error):
                    raise Broken(f"object {key}: {error}") from error
            raise
        # A body that is not read to its end would be taken for the next response on this connection.
        if body.left:
            connection.close()
        else:
            self._idle.append(connection)

    def _taken(self) -> _Connection | None:
        with contextlib.suppress(IndexError):
            # The one used last is the least likely to have been closed by the store.
            return self._idle.pop()
        return None

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())


class _Network:
    """Translates network errors. Not a generator, because it is entered for every read."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BlockingIOError):
            raise Broken(f"nothing came for {SILENCE_S:.0f} s") from error
        if isinstance(error, OSError | http.client.HTTPException):
            raise Broken(f"the connection was lost: {error!r}") from error


_NETWORK = _Network()
