"""What a store answers to a GET of a range: the one answer that is expected, read by hand, and all others."""

import contextlib
import html
import http.client
import io
import re
import socket
from typing import NamedTuple, cast

BUSY = (408, 429, 500, 502, 503, 504)
"""Worth another try; 408 is what some say before they close a connection that was idle for long."""
_MOST_TEXT_BYTES = 64 << 10
_PLACE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)$", re.IGNORECASE)


class StoreError(Exception):
    """The store does not give what it was asked for."""


class Broken(StoreError):
    """The connection failed, or the store is busy: worth another try."""


class Origin(NamedTuple):
    """Which content of an object some bytes are a part of, as far as the store tells."""

    size: int | None
    """Bytes of all of it."""
    etag: str
    """Another one for another content; empty if the store has none."""


def expected(head: bytes, offset: int, length: int) -> Origin | None:
    """Where the bytes come from, if an answer is just what was asked for and its connection stays open."""
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
    """Read the head of an answer whose first bytes have been received."""
    response = http.client.HTTPResponse(cast("socket.socket", _Again(begun, connection)))
    response.begin()
    return response


def checked(response: http.client.HTTPResponse, key: str, offset: int, length: int) -> Origin:
    """Say where the bytes come from; `StoreError` unless the answer is what was asked for."""
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
        # What follows may be a signature.
        parts.append(f"the store sends to {moved.partition('?')[0]}; give its address as endpoint_url")
    kind = Broken if status in BUSY else StoreError
    raise kind(": ".join(parts + _told(response)))


def _origin(place: str, etag: str, offset: int, length: int) -> Origin | None:
    """Of a `Content-Range`, if it is the one that was asked for. Without one it is the whole object."""
    if not place:
        # Some stores call a range 200; one that knows no ranges gives all of it.
        return None if offset else Origin(length, etag)
    place_match = _PLACE.match(place)
    if not place_match or (int(place_match[1]), int(place_match[2])) != (offset, offset + length - 1):
        return None
    return Origin(None if place_match[3] == "*" else int(place_match[3]), etag)


def _told(response: http.client.HTTPResponse) -> list[str]:
    """What the store says about a failure, which stays one when its text is cut off."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        text = response.read(_MOST_TEXT_BYTES).decode(errors="replace")
        return [html.unescape(part) for part in re.findall(r"<(?:Code|Message)>([^<]*)<", text)]
    return []


class _Again(io.RawIOBase):
    """A connection whose first bytes have been read already, as `http.client` wants it."""

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
