"""What a line must hold: a piece of text, or a regular expression; all of a chunk is searched at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import re2

from det_contracts.problems import invalid
from services.metrics.logs.chunk import PARTING
from services.metrics.logs.trigrams import may_hold
from services.metrics.values import storable

LONGEST = 10_000
"""Characters of a pattern."""
MEMORY_BYTES = 16 * 1024 * 1024


class Finder(Protocol):
    """Finds lines."""

    def may_find(self, trigrams: bytes | None) -> bool:
        """False when a chunk with such trigrams surely has no such line; None: nothing is known of it."""

    def lines(self, text: bytes, ends: Any) -> Any:
        """Which of the NUL-parted lines fit, as bool per line; `ends` are their ends in the text."""


class Everything:
    """Every line."""

    def may_find(self, trigrams: bytes | None) -> bool:
        return True

    def lines(self, text: bytes, ends: Any) -> Any:
        return np.ones(len(ends), bool)


class Substring:
    """The text itself; upper and lower case are not the same."""

    def __init__(self, text: str) -> None:
        self._part = storable(text).encode()

    def may_find(self, trigrams: bytes | None) -> bool:
        return trigrams is None or may_hold(trigrams, self._part)

    def lines(self, text: bytes, ends: Any) -> Any:
        found = np.zeros(len(ends), bool)
        at = text.find(self._part)
        while at >= 0:
            line = int(ends.searchsorted(at))
            found[line] = True
            at = text.find(self._part, int(ends[line]) + 1)
        return found


class Expression:
    """A regular expression as RE2 has it: its time is linear in the text, whatever the pattern."""

    def __init__(self, pattern: str) -> None:
        """Raises `Refused` (invalid) for one that cannot be read."""
        if len(pattern) > LONGEST:
            raise invalid(f"a regular expression has {LONGEST} characters at most, not {len(pattern)}")
        options = re2.Options()
        options.max_mem = MEMORY_BYTES
        options.log_errors = False
        # Lines are searched as one text: no match may reach over the end of one.
        options.never_nl = True
        options.never_capture = True
        try:
            self._search = re2.compile(b"(?m)" + pattern.encode(), options).search
        except (re2.error, UnicodeError) as error:
            why = error.args[0]
            why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(error)
            raise invalid(
                f"'{pattern}' is no regular expression (RE2): {why.removesuffix(f': (?m){pattern}')}"
            ) from None

    def may_find(self, trigrams: bytes | None) -> bool:
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
    """What a query looks for: the regular expression where there is one, else the text."""
    if regex:
        return Expression(regex)
    return Substring(text) if text else Everything()
