"""Bytes as they come from a pipe, cut into lines."""

from __future__ import annotations

PIECE_BYTES = 32 * 1024
"""Longest line; what is longer becomes several, marked where it goes on."""
GOES_ON = "\N{HORIZONTAL ELLIPSIS}".encode()
HEAD_BYTES = 64
"""In so many a line says its rank and level."""
_HEAD = rb"( ?\[rank=[0-9]{1,9}\] ?)?( ?(DEBUG|INFO|WARNING|ERROR|CRITICAL): ?)?"


class Lines:
    """Cuts one stream. A carriage return ends a line too, as progress bars use it; `\\r\\n` is one end."""

    def __init__(self) -> None:
        self._rest = b""
        self._before = b""
        """Stands before what is left of a line that was begun: its rank and level again, and the mark."""
        self._returned = False

    def feed(self, data: bytes) -> list[bytes]:
        """Lines that are complete now, without their ends. Holds back less than `PIECE_BYTES` + 1."""
        if self._returned and data.startswith(b"\n"):
            data = data[1:]
        self._returned = data.endswith(b"\r")
        text = self._rest + data
        *lines, rest = text.replace(b"\r\n", b"\n").split(b"\n")
        if b"\r" in text:
            lines = [part for line in lines for part in _by_returns(line)]
            *done, rest = rest.split(b"\r")
            lines += filter(None, done)
        if self._before or len(text) > PIECE_BYTES:
            lines = [piece for line in lines for piece in self._ended(line)]
            *done, rest = self._pieces(rest)
            lines += done
        self._rest = rest
        return lines

    def finish(self) -> list[bytes]:
        """What stands there without an end."""
        rest, self._rest = self._rest, b""
        return self._ended(rest) if rest else []

    def _ended(self, line: bytes) -> list[bytes]:
        """All pieces of a line whose end has come."""
        *done, rest = self._pieces(line)
        done.append(self._before + rest)
        self._before = b""
        return done

    def _pieces(self, line: bytes) -> list[bytes]:
        """Cut a long line, not in the middle of a UTF-8 character; the last is what is left, yet unmarked."""
        pieces, start = [], 0
        while len(line) - start > (room := PIECE_BYTES - len(self._before)):
            cut = latest = start + room - len(GOES_ON)
            while cut > latest - 4 and line[cut] & 0xC0 == 0x80:
                cut -= 1
            pieces.append(self._before + line[start:cut] + GOES_ON)
            self._before = self._before or _head(line) + GOES_ON
            start = cut
        return [*pieces, line[start:]]


def _by_returns(line: bytes) -> list[bytes]:
    """A bar that redraws begins with a return: the nothing before it is no line, but an empty line is one."""
    return list(filter(None, line.split(b"\r"))) or [b""]


def _head(line: bytes) -> bytes:
    # Long lines are rare, and the shim has to start fast.
    import re

    matched = re.match(_HEAD, line[:HEAD_BYTES])
    return matched[0] if matched else b""
