"""Splits bytes from a pipe into lines."""

from __future__ import annotations

PIECE_BYTES = 32 * 1024
"""Longest line. A longer one is split into several, which are marked as continued."""
CONTINUATION_MARK = "\N{HORIZONTAL ELLIPSIS}".encode()
HEAD_BYTES = 64
"""A line's rank and level are within its first `HEAD_BYTES` bytes."""
_HEAD = rb"( ?\[rank=[0-9]{1,9}\] ?)?( ?(DEBUG|INFO|WARNING|ERROR|CRITICAL): ?)?"


class LineSplitter:
    """Splits one stream.

    A carriage return ends a line too, for progress bars; `\\r\\n` is a single line end.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._before = b""
        """Prefix of the rest of a split line: its rank and level again, and the mark."""
        self._returned = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are now complete, without line ends.

        Holds back at most `PIECE_BYTES` bytes.
        """
        if self._returned and data.startswith(b"\n"):
            data = data[1:]
        self._returned = data.endswith(b"\r")
        text = self._rest + data
        *lines, rest = text.replace(b"\r\n", b"\n").split(b"\n")
        if b"\r" in text:
            lines = [part for line in lines for part in _split_at_returns(line)]
            *done, rest = rest.split(b"\r")
            lines += filter(None, done)
        if self._before or len(text) > PIECE_BYTES:
            lines = [piece for line in lines for piece in self._finish_line(line)]
            *done, rest = self._pieces(rest)
            lines += done
        self._rest = rest
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if it has no line end."""
        rest, self._rest = self._rest, b""
        return self._finish_line(rest) if rest else []

    def _finish_line(self, line: bytes) -> list[bytes]:
        """All pieces of a complete line."""
        *done, rest = self._pieces(line)
        done.append(self._before + rest)
        self._before = b""
        return done

    def _pieces(self, line: bytes) -> list[bytes]:
        """Split a long line, but not within a UTF-8 character. The last piece is the rest, without a mark."""
        pieces, start = [], 0
        while len(line) - start > (capacity := PIECE_BYTES - len(self._before)):
            cut = latest = start + capacity - len(CONTINUATION_MARK)
            while cut > latest - 4 and line[cut] & 0xC0 == 0x80:
                cut -= 1
            pieces.append(self._before + line[start:cut] + CONTINUATION_MARK)
            self._before = self._before or _head(line) + CONTINUATION_MARK
            start = cut
        return [*pieces, line[start:]]


def _split_at_returns(line: bytes) -> list[bytes]:
    """Split at carriage returns.

    A progress bar begins with one, so the empty part before it is no line; an empty line is.
    """
    return list(filter(None, line.split(b"\r"))) or [b""]


def _head(line: bytes) -> bytes:
    # Long lines are rare, and the shim must start fast.
    import re

    matched = re.match(_HEAD, line[:HEAD_BYTES])
    return matched[0] if matched else b""
