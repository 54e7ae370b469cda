"""Responses to ranged GETs: the expected one is parsed by hand, all others by `http.client`."""

import contextlib
import html
import http.client
import io
import re
import socket
from typing import cast

from determined.storage.bucket import Broken, Origin, StoreError

BUSY = (408, 429, 500, 502, 503, 504)
"""Statuses worth a retry. Some stores send 408 before closing a connection that was idle for long."""
_MOST_TEXT_BYTES = 64 << 10
_PLACE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)$", re.IGNORECASE)


def expected(head: bytes, offset: int, length: int) -> Origin | None:
    """Return the origin of the bytes if this is exactly the requested range and the connection stays open."""
    first, *lines = head.split(b"\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    if (
        first[:12] not in (b"HTTP/1.1 200", b"HTTP/1.1 206")
        or fields.get(b"content-length") != b"%d" % length
        or fields.get(b"connection", b"keep-alive").lower() != b"keep-alive"
        or b"transfer-encoding" in fields
    ):
        return None
    etag = fields.get(b"etag", b"").decode("latin-1")
    return _origin(fields.get(b"content-range", b"").decode("latin-1"), etag, offset, length)


def parsed(begun: bytes, connection: socket.socket) -> http.client.HTTPResponse:
    """Parse a response whose first bytes have already been received."""
    response = http.client.HTTPResponse(cast("socket.socket", _Again(begun, connection)))
    response.begin()
    return response


def checked(response: http.client.HTTPResponse, key: str, offset: int, length: int) -> Origin:
    """Return the origin of the bytes. Raises `StoreError` unless the response is what was requested."""
    status, place = response.status, response.getheader("Content-Range") or ""
    if status in (200, 206):
        origin = _origin(place, response.getheader("ETag") or "", offset, length)
        if origin and response.length in (length, None):
            return origin
        raise StoreError(
            f"object {key}: the store gave other bytes than {length} from {offset}: "
            f"{place or 'no range'}, length {response.length}"
        )
    parts = [f"object {key}", f"{status} {response.reason}"]
    if moved := response.getheader("Location"):
        # The query string may contain a signature.
        parts.append(f"the store sends to {moved.partition('?')[0]}; give its address as endpoint_url")
    kind = Broken if status in BUSY else StoreError
    raise kind(": ".join(parts + _error_parts(response)))


def _origin(place: str, etag: str, offset: int, length: int) -> Origin | None:
    """Parse `Content-Range` if it matches the request. Without the header it is the whole object."""
    if not place:
        # Some stores answer a range with 200; a store without range support sends the whole object.
        return None if offset else Origin(length, etag)
    place_match = _PLACE.match(place)
    if not place_match or (int(place_match[1]), int(place_match[2])) != (offset, offset + length - 1):
        return None
    return Origin(None if place_match[3] == "*" else int(place_match[3]), etag)


def _error_parts(response: http.client.HTTPResponse) -> list[str]:
    """Return the store's error message. Reading it may fail, but that does not change the error."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        text = response.read(_MOST_TEXT_BYTES).decode(errors="replace")
        return [html.unescape(part) for part in re.findall(r"<(?:Code|Message)>([^<]*)<", text)]
    return []


class _Again(io.RawIOBase):
    """A connection whose first bytes have already been read, in the form that `http.client` expects."""

    def __init__(self, begun: bytes, connection: socket.socket) -> None:
        self._begun = begun
        self._connection = connection

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        if not self._begun:
            return self._connection.recv_into(buffer)
        count = min(len(self._begun), len(buffer))
        buffer[:count], self._begun = self._begun[:count], self._begun[count:]
        return count
