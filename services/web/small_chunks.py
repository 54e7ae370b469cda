"""What h11 makes of bytes that are many small pieces: as few events as it can, and no hints without an end.

For each chunk of a body, be it of one byte, h11 makes an event, which costs the loop as much as thousands of
bytes in one piece: with a few connections, anybody who could reach the gateway took all of its time, and so
did a task by what it answered. Here the chunks that have come are one event, in requests and in answers.

h11 has no public place for this: its table of readers is private. What is put there is a reader of its own,
which does as it did until a chunk is read, and takes along those behind it.
"""

from __future__ import annotations

import re
from typing import Any

import h11
from h11._readers import READERS, ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from h11._util import LocalProtocolError

NEXT_CHUNK = re.compile(rb"\r\n([0-9A-Fa-f]{1,20})(?:;[^\n]*)?[ \t]*\r\n")
"""The end of a chunk and the size of the next one, in all the ways in which h11 takes them: one that it takes
and this does not would be slow again."""
MOST_SMALL, SMALL_BYTES = 50_000, 16
"""So many chunks of a body may have piled up that were smaller on average: nobody writes so by accident, and
taking them apart costs its time as well. Those that came one by one do not count."""
MOST_HINTS = 32
"""Answers such as 103 before the one that counts. A server that sends them without end costs only time."""
_HINTS = "steadfast_hints"


class Gathering(ChunkedReader):
    """Reads a body in chunks; those that have come whole are one."""

    def __init__(self) -> None:
        super().__init__()
        self._chunks = self._bytes = 0

    def __call__(self, buf: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        """The next event, or None until more has come; raises as the base class does."""
        event = super().__call__(buf)
        if not isinstance(event, h11.Data) or not event.chunk_end:
            return event
        more = _whole_chunks(buf)
        if not more:
            return event
        self._chunks += len(more)
        self._bytes += sum(map(len, more))
        if self._chunks > max(MOST_SMALL, self._bytes // SMALL_BYTES):
            raise LocalProtocolError(f"more than {MOST_SMALL:,} chunks of less than {SMALL_BYTES} bytes")
        return h11.Data(data=b"".join((event.data, *more)), chunk_start=event.chunk_start, chunk_end=True)


def _whole_chunks(buf: ReceiveBuffer) -> list[bytes]:
    """Take them out of the buffer, from the end of one chunk to the end of another."""
    found: list[bytes] = []
    data, at = bytes(buf), 0
    while head := NEXT_CHUNK.match(data, at):
        begin = head.end()
        end = begin + int(head[1], 16)
        if end == begin or end > len(data):
            # The last one, or one that is not here yet.
            break
        found.append(data[begin:end])
        at = end
    if at:
        buf.maybe_extract_at_most(at)
    return found


# It holds readers and, for bodies, tables of them: its declared type tells the two apart nowhere.
_READERS: dict[Any, Any] = READERS
_read_answer = _READERS[h11.SERVER, h11.SEND_RESPONSE]


def _answer(buf: ReceiveBuffer) -> h11.InformationalResponse | h11.Response | None:
    event: h11.InformationalResponse | h11.Response | None = _read_answer(buf)
    if isinstance(event, h11.InformationalResponse):
        hints = getattr(buf, _HINTS, 0) + 1
        if hints > MOST_HINTS:
            raise LocalProtocolError(f"more than {MOST_HINTS} answers before the one that counts")
        setattr(buf, _HINTS, hints)
    elif event is not None:
        setattr(buf, _HINTS, 0)
    return event


def install() -> None:
    """From here on every connection of this process is read so."""
    _READERS[h11.SEND_BODY]["chunked"] = Gathering
    for state in (h11.IDLE, h11.SEND_RESPONSE):
        _READERS[h11.SERVER, state] = _answer
