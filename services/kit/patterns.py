"""User-supplied regular expressions: RE2, which runs in time linear in the text, whatever the pattern."""

from __future__ import annotations

from typing import Any, Protocol

import re2

from det_contracts.problems import invalid

MAX_LENGTH = 10_000
"""Maximum length of a pattern in characters."""
MEMORY_BYTES = 16 * 1024 * 1024
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
        found: Search = re2.compile((_EACH_LINE + pattern).encode(), options).search
    except (re2.error, UnicodeError) as error:
        raise invalid(f"'{pattern}' is not a regular expression (RE2): {_reason(error)}") from None
    return found


def _reason(error: Exception) -> str:
    message = error.args[0] if error.args else str(error)
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(error)
    return text.partition(f": {_EACH_LINE}")[0]
