"""Makes h11 read bodies of many small chunks as few events, and limits interim responses.

h11 creates an event for each chunk of a body, even for one byte, which costs as much as thousands of bytes in
one piece. A few connections from anyone who could reach the gateway, or a task's response, could thus use up
the event loop. Here, all chunks that have arrived become one event, in requests and in responses.

h11 has no public hook for this: its table of readers is private. The reader installed there behaves like the
original until a chunk is complete, and then also takes the chunks behind it.
"""

from __future__ import annotations

import re
from typing import Any

import h11
from h11._readers import READERS, ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from h11._util import LocalProtocolError

NEXT_CHUNK = re.compile(rb"\r\n([0-9A-Fa-f]{1,20})(?:;[^\n]*)?[ \t]*\r\n")
"""The end of a chunk and the size of the next, in every form that h11 accepts: a form missing here would
still be slow."""
MAX_SMALL_CHUNKS, SMALL_BYTES = 50_000, 16
"""Maximum number of accumulated chunks with a smaller average size. Such bodies are never accidental, and
splitting them is costly too. Chunks that arrived one by one do not count."""
MAX_HINTS = 32
"""Maximum number of interim responses such as 103. A server that sends them endlessly only wastes time."""
_HINT_COUNT = "steadfast_hints"


class JoiningChunkedReader(ChunkedReader):
    """Reads a chunked body, joining the chunks that have arrived completely."""

    def __init__(self) -> None:
        super().__init__()
        self._chunks = self._bytes = 0

    def __call__(self, buf: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        """Return the next event, or None until more data has arrived. Raises like the base class."""
        event = super().__call__(buf)
        if not isinstance(event, h11.Data) or not event.chunk_end:
            return event
        more = _whole_chunks(buf)
        if not more:
            return event
        self._chunks += len(more)
        self._bytes += sum(map(len, more))
        if self._chunks > max(MAX_SMALL_CHUNKS, self._bytes // SMALL_BYTES):
            raise LocalProtocolError(
                f"more than {MAX_SMALL_CHUNKS:,} chunks of less than {SMALL_BYTES} bytes"
            )
        return h11.Data(data=b"".join((event.data, *more)), chunk_start=event.chunk_start, chunk_end=True)


def _whole_chunks(buf: ReceiveBuffer) -> list[bytes]:
    """Take the complete chunks from the buffer."""
    chunks: list[bytes] = []
    data, at = bytes(buf), 0
    while head := NEXT_CHUNK.match(data, at):
        begin = head.end()
        end = begin + int(head[1], 16)
        if end == begin or end > len(data):
            # The last chunk, or one that has not arrived completely.
            break
        chunks.append(data[begin:end])
        at = end
    if at:
        buf.maybe_extract_at_most(at)
    return chunks


# The table holds readers and, for bodies, tables of readers; its declared type does not distinguish them.
_READERS: dict[Any, Any] = READERS
_original_reader = _READERS[h11.SERVER, h11.SEND_RESPONSE]


def _read_response(buf: ReceiveBuffer) -> h11.InformationalResponse | h11.Response | None:
    event: h11.InformationalResponse | h11.Response | None = _original_reader(buf)
    if isinstance(event, h11.InformationalResponse):
        hints = getattr(buf, _HINT_COUNT, 0) + 1
        if hints > MAX_HINTS:
            raise LocalProtocolError(f"more than {MAX_HINTS} answers before the one that counts")
        setattr(buf, _HINT_COUNT, hints)
    elif event is not None:
        setattr(buf, _HINT_COUNT, 0)
    return event


def install() -> None:
    """Install the readers for every connection of this process."""
    _READERS[h11.SEND_BODY]["chunked"] = JoiningChunkedReader
    for state in (h11.IDLE, h11.SEND_RESPONSE):
        _READERS[h11.SERVER, state] = _read_response
