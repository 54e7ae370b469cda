"""Searches lines for a text or a regular expression, in a whole chunk at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from services.kit.database import storable
from services.kit.patterns import search
from services.metrics.logs.chunk import PARTING
from services.metrics.logs.trigrams import may_hold


class Finder(Protocol):
    """Finds matching lines."""

    def may_find(self, trigrams: bytes | None) -> bool:
        """False if a chunk with these trigrams cannot contain a match. None: its trigrams are unknown."""

    def is_in(self, text: bytes) -> bool:
        """Whether any line of a text may match; cheaper than `lines`."""

    def lines(self, text: bytes, ends: Any) -> Any:
        """Which of the NUL-separated lines match, one bool per line.

        `ends` are the ends of the lines in the text.
        """


class Everything:
    """Matches every line."""

    def may_find(self, trigrams: bytes | None) -> bool:
        return True

    def is_in(self, text: bytes) -> bool:
        return True

    def lines(self, text: bytes, ends: Any) -> Any:
        return np.ones(len(ends), bool)


class Substring:
    """Matches lines that contain a text, case-sensitively."""

    def __init__(self, text: str) -> None:
        self._part = storable(text).encode()

    def may_find(self, trigrams: bytes | None) -> bool:
        return trigrams is None or may_hold(trigrams, self._part)

    def is_in(self, text: bytes) -> bool:
        return self._part in text

    def lines(self, text: bytes, ends: Any) -> Any:
        found = np.zeros(len(ends), bool)
        at = text.find(self._part)
        while at >= 0:
            line = int(ends.searchsorted(at))
            found[line] = True
            at = text.find(self._part, int(ends[line]) + 1)
        return found


class Expression:
    """Matches a regular expression (`services.kit.patterns`)."""

    def __init__(self, pattern: str) -> None:
        self._search = search(pattern)

    def may_find(self, trigrams: bytes | None) -> bool:
        return True

    def is_in(self, text: bytes) -> bool:
        return True

    def lines(self, text: bytes, ends: Any) -> Any:
        found = np.zeros(len(ends), bool)
        found[list(self._places(text.replace(PARTING, b"\n"), ends))] = True
        return found

    def _places(self, text: bytes, ends: Any) -> Iterator[int]:
        match = self._search(text, 0)
        while match is not None:
            line = int(ends.searchsorted(match.start()))
            yield line
            after = int(ends[line]) + 1
            match = self._search(text, after) if after <= len(text) else None


def finder(text: str, regex: str) -> Finder:
    """The finder for a query: its regular expression if it has one, else its text."""
    if regex:
        return Expression(regex)
    return Substring(text) if text else Everything()
