"""Bytes as they come from a pipe, cut into lines."""

from __future__ import annotations

PIECE_BYTES = 32 * 1024
"""Longest line; what is longer becomes several."""


class Lines:
    """Cuts one stream. A carriage return ends a line too, as progress bars use it; `\\r\\n` is one end."""

    def __init__(self) -> None:
        self._rest = b""
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
        if len(text) > PIECE_BYTES:
            *done, rest = _pieces(rest)
            lines = [piece for line in lines for piece in _pieces(line)] + done
        self._rest = rest
        return lines

    def finish(self) -> list[bytes]:
        """What stands there without an end."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


def _by_returns(line: bytes) -> list[bytes]:
    """A bar that redraws begins with a return: the nothing before it is no line, but an empty line is one."""
    return list(filter(None, line.split(b"\r"))) or [b""]


def _pieces(line: bytes) -> list[bytes]:
    """Cut a long line, not in the middle of a UTF-8 character."""
    pieces, start = [], 0
    while len(line) - start > PIECE_BYTES:
        cut = start + PIECE_BYTES
        while cut > start + PIECE_BYTES - 4 and line[cut] & 0xC0 == 0x80:
            cut -= 1
        pieces.append(line[start:cut])
        start = cut
    return [*pieces, line[start:]]
