"""Maximum nesting depth of JSON documents, so that no recursive reader fails.

Scripts write to the log directly. A document that is nested too deeply for a reader would stop every service
that reads it, again after each restart. Such documents are therefore detected before they are parsed.
"""

from __future__ import annotations

import re
from itertools import accumulate

LEVELS = 128
"""Levels of a complete message. A value reported by a script has fewer, see `VALUE_LEVELS`."""
VALUE_LEVELS = 100
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEP = [0] * 256
for _open, _close in (b"[]", b"{}"):
    _STEP[_open], _STEP[_close] = 1, -1
# Matches at every quote and never backtracks, so the time is linear in the length of any text.
_STRINGS = re.compile(rb'"[^"]*"?')


def is_too_deep(document: bytes) -> bool:
    """Whether a JSON document nests deeper than `LEVELS`. For invalid JSON the result is arbitrary."""
    # Almost every message ends here, for the price of two counts.
    if document.count(b"[") + document.count(b"{") <= LEVELS:
        return False
    # The first count includes brackets in strings, which are few and usually balanced.
    return _depth(document) > LEVELS and _depth(_without_strings(document)) > LEVELS


def _without_strings(document: bytes) -> bytes:
    # In JSON a backslash occurs only in strings, and the first of several starts an escape sequence.
    unescaped = document.replace(rb"\\", b"").replace(rb"\"", b"")
    return _STRINGS.sub(b"", unescaped)


def _depth(document: bytes) -> int:
    brackets = document.translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
