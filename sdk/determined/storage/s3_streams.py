"""Ranges of objects as streams, over connections that stay open from one range to the next.

The store's client spends twice as much processor time on a small object, and copies what arrives once more;
here it signs the requests only. Imported on first use only, with the client.
"""

import collections
import contextlib
import http.client
import os
import re
import ssl
from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Protocol
from urllib.parse import SplitResult, urlsplit

import certifi

if TYPE_CHECKING:
    from minio import Minio

_VALID = timedelta(hours=1)
_CONNECT_S, _READ_S = 10.0, 300.0
_BUSY = (500, 502, 503, 504)


class StoreError(Exception):
    """The store does not give what it was asked for."""


class Broken(StoreError):
    """The connection failed, or the store is busy: worth another try."""


class Body(Protocol):
    """What arrives."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the buffer as far as there is anything; 0 at the end. Raises `Broken`."""


class _Arriving:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def readinto(self, buffer: memoryview, /) -> int:
        with _network():
            return self._response.readinto(buffer)


class Streams:
    """GETs of one bucket's objects, by any number of threads."""

    def __init__(self, client: "Minio", bucket: str) -> None:
        self._client = client
        self._bucket = bucket
        self._idle: collections.deque[http.client.HTTPConnection] = collections.deque()

    def close(self) -> None:
        """Close what is open; nobody may be using it."""
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def get(self, key: str, offset: int, length: int) -> Iterator[Body]:
        """Ask for bytes of an object; raises `StoreError`."""
        url = urlsplit(self._client.get_presigned_url("GET", self._bucket, key, expires=_VALID))
        connection = self._idle.pop() if self._idle else self._connect(url)
        try:
            with _network():
                wanted = {"Range": f"bytes={offset}-{offset + length - 1}"}
                connection.request("GET", f"{url.path}?{url.query}", headers=wanted)
                response = connection.getresponse()
                _check(response, key, offset, length)
            yield _Arriving(response)
            whole = response.isclosed()
        except BaseException:
            connection.close()
            raise
        # What is left of an answer would be taken for the next one.
        if whole:
            self._idle.append(connection)
        else:
            connection.close()

    def _connect(self, url: SplitResult) -> http.client.HTTPConnection:
        host = url.hostname or ""
        if url.scheme == "https":
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, url.port, timeout=_CONNECT_S, context=self._trust
            )
        else:
            made = http.client.HTTPConnection(host, url.port, timeout=_CONNECT_S)
        with _network():
            made.connect()
        made.sock.settimeout(_READ_S)
        return made

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())


@contextlib.contextmanager
def _network() -> Iterator[None]:
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise Broken(f"the connection broke: {error!r}") from error


def _check(response: http.client.HTTPResponse, key: str, offset: int, length: int) -> None:
    """Raise `StoreError` unless the answer is what was asked for."""
    status = response.status
    if status in (200, 206):
        # Some stores call a range 200; one that knows no ranges gives all of it.
        begins = (response.getheader("Content-Range") or "bytes 0-").startswith(f"bytes {offset}-")
        if begins and response.length in (length, None):
            return
        raise StoreError(f"object {key}: the store gave other bytes than {length} from {offset}")
    told = re.findall(r"<(?:Code|Message)>([^<]*)<", response.read().decode(errors="replace"))
    kind = Broken if status in _BUSY else StoreError
    raise kind(": ".join([f"object {key}", f"{status} {response.reason}", *told]))
