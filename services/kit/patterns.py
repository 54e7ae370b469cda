"""Patterns that users supply: RE2 and `%`, which take time linear in the text, whatever the pattern.

Python's own `re` goes back over a text, so it never sees a pattern of a user, and the platform's own patterns
are tried for it (`tests/architecture/test_patterns.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import re2

from det_contracts.problems import invalid

MAX_LENGTH = 10_000
"""Maximum length of a pattern in characters."""
MEMORY_BYTES = 16 * 1024 * 1024
ANY_TEXT = "%"
"""Stands for any text in a name."""
_EACH_LINE = "(?m)"


class Search(Protocol):
    """Finds the first match in UTF-8 text at or after an offset; None if there is none."""

    def __call__(self, text: bytes, start: int = 0) -> Any: ...


def search(pattern: str) -> Search:
    """Compile a pattern. No match spans lines; `^` and `$` match at line boundaries.

    Raises `Refused` (invalid) for an invalid pattern.
    """
    if len(pattern) > MAX_LENGTH:
        raise invalid(f"a regular expression has {MAX_LENGTH} characters at most, not {len(pattern)}")
    options = re2.Options()
    options.max_mem = MEMORY_BYTES
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    try:
        compiled_search: Search = re2.compile((_EACH_LINE + pattern).encode(), options).search
    except (re2.error, UnicodeError) as error:
        raise invalid(f"'{pattern}' is not a regular expression (RE2): {_reason(error)}") from None
    return compiled_search


def name_matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a name fits a pattern in which `%` stands for any text, ignoring case.

    >>> fits = name_matcher("mn%st%")
    >>> fits("MNIST"), fits("mnist2"), fits("st-mn")
    (True, True, False)
    """
    parts = pattern.casefold().split(ANY_TEXT)
    first, inner, last = parts[0], parts[1:-1], parts[-1]
    if len(parts) == 1:
        return lambda name: name.casefold() == first

    def matches(name: str) -> bool:
        text = name.casefold()
        at, end = len(first), len(text) - len(last)
        if end < at or not text.startswith(first) or not text.endswith(last):
            return False
        # The earliest place of each part leaves the most room for the others: nothing is tried twice.
        for part in inner:
            start = text.find(part, at, end)
            if start < 0:
                return False
            at = start + len(part)
        return True

    return matches


def _reason(error: Exception) -> str:
    message = error.args[0] if error.args else str(error)
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(error)
    return text.partition(f": {_EACH_LINE}")[0]
