"""How deep a JSON document may nest: each reader goes down with it, and none may fall.

A script writes into the log by itself. What is deeper than any reader can follow would end every service that
comes to it, again after each restart; so it is told apart before it is read.
"""

from __future__ import annotations

import re
from itertools import accumulate

LEVELS = 128
"""Of a whole message; a value that a script reports has less room, see `VALUE_LEVELS`."""
VALUE_LEVELS = 100
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEP = [0] * 256
for _open, _close in (b"[]", b"{}"):
    _STEP[_open], _STEP[_close] = 1, -1
# Finds something at every quote, and so never goes back: time is in proportion to the text, whatever that is.
_STRINGS = re.compile(rb'"[^"]*"?')


def is_too_deep(document: bytes) -> bool:
    """Whether a JSON document nests deeper than `LEVELS`; of what is no JSON, either may be said."""
    if document.count(b"[") + document.count(b"{") <= LEVELS:
        return False
    # Brackets in strings count as well at first: they are few, and seldom without their partner.
    return _depth(document) > LEVELS and _depth(_without_strings(document)) > LEVELS


def _without_strings(document: bytes) -> bytes:
    # In JSON a backslash is in a string, and the first of several begins an escape.
    unescaped = document.replace(rb"\\", b"").replace(rb"\"", b"")
    return _STRINGS.sub(b"", unescaped)


def _depth(document: bytes) -> int:
    brackets = document.translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
