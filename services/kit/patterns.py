"""Regular expressions that people type: RE2, whose time is linear in the text, whatever the pattern."""

from __future__ import annotations

from typing import Any, Protocol

import re2

from det_contracts.problems import invalid

LONGEST = 10_000
"""Characters of a pattern."""
MEMORY_BYTES = 16 * 1024 * 1024
_EACH_LINE = "(?m)"


class Search(Protocol):
    """Finds the first match in UTF-8 text at or behind a place; None when there is none."""

    def __call__(self, text: bytes, start: int = 0) -> Any: ...


def search(pattern: str) -> Search:
    """The search for a pattern. No match reaches over a line's end; `^` and `$` are ends of lines.

    Raises `Refused` (invalid) for a pattern that cannot be read.
    """
    if len(pattern) > LONGEST:
        raise invalid(f"a regular expression has {LONGEST} characters at most, not {len(pattern)}")
    options = re2.Options()
    options.max_mem = MEMORY_BYTES
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    try:
        found: Search = re2.compile((_EACH_LINE + pattern).encode(), options).search
    except (re2.error, UnicodeError) as error:
        raise invalid(f"'{pattern}' is no regular expression (RE2): {_reason(error)}") from None
    return found


def _reason(error: Exception) -> str:
    told = error.args[0] if error.args else str(error)
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(error)
    return text.partition(f": {_EACH_LINE}")[0]
