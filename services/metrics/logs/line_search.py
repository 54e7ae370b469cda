"""Searches lines for a text or a regular expression, in a whole chunk at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from services.kit.database import replace_nul
from services.kit.patterns import search
from services.metrics.logs.chunk import LINE_SEPARATOR
from services.metrics.logs.trigrams import can_contain


class Finder(Protocol):
    """Finds matching lines."""

    def can_match_chunk(self, trigrams: bytes | None) -> bool:
        """False if a chunk with these trigrams cannot contain a match. None: its trigrams are unknown."""

    def can_match_text(self, text: bytes) -> bool:
        """Whether any line of a text may match; cheaper than `matching_lines`."""

    def matching_lines(self, text: bytes, ends: Any) -> Any:
        """Which of the NUL-separated lines match, one bool per line.

        `ends` are the ends of the lines in the text.
        """


class AnyLine:
    """Matches every line."""

    def can_match_chunk(self, trigrams: bytes | None) -> bool:
        return True

    def can_match_text(self, text: bytes) -> bool:
        return True

    def matching_lines(self, text: bytes, ends: Any) -> Any:
        return np.ones(len(ends), bool)


class Substring:
    """Matches lines that contain a text, case-sensitively."""

    def __init__(self, text: str) -> None:
        self._part = replace_nul(text).encode()

    def can_match_chunk(self, trigrams: bytes | None) -> bool:
        return trigrams is None or can_contain(trigrams, self._part)

    def can_match_text(self, text: bytes) -> bool:
        return self._part in text

    def matching_lines(self, text: bytes, ends: Any) -> Any:
        matches = np.zeros(len(ends), bool)
        at = text.find(self._part)
        while at >= 0:
            line = int(ends.searchsorted(at))
            matches[line] = True
            at = text.find(self._part, int(ends[line]) + 1)
        return matches


class Expression:
    """Matches a regular expression (`services.kit.patterns`)."""

    def __init__(self, pattern: str) -> None:
        self._search = search(pattern)

    def can_match_chunk(self, trigrams: bytes | None) -> bool:
        return True

    def can_match_text(self, text: bytes) -> bool:
        return True

    def matching_lines(self, text: bytes, ends: Any) -> Any:
        matches = np.zeros(len(ends), bool)
        # As one text with line breaks, where `^`, `$` and `.` mean what they mean in a single line.
        matches[list(self._line_indexes(text.replace(LINE_SEPARATOR, b"\n"), ends))] = True
        return matches

    def _line_indexes(self, text: bytes, ends: Any) -> Iterator[int]:
        match = self._search(text, 0)
        while match is not None:
            line = int(ends.searchsorted(match.start()))
            yield line
            # One match per line is enough.
            after = int(ends[line]) + 1
            match = self._search(text, after) if after <= len(text) else None


def finder(text: str, regex: str) -> Finder:
    """The finder for a query: its regular expression if it has one, else its text."""
    if regex:
        return Expression(regex)
    return Substring(text) if text else AnyLine()
