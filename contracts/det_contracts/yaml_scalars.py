"""Which unquoted YAML scalars are numbers, booleans and nulls: one table for the client and the gateway.

They must agree, since `det` sends a configuration as written, and composed anew if a field is overridden.
Numbers are those of YAML 1.2, with underscores, signs and binary digits as in YAML 1.1.
"""

from __future__ import annotations

import re

_TAG = "tag:yaml.org,2002:"
_INTEGER = r"[-+]?(?:[0-9][0-9_]*|0o_*[0-7][0-7_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|0b_*[01][01_]*)$"
_FLOAT = (
    r"[-+]?(?:(?:\.[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*)(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$"
)

SCALARS = (
    (f"{_TAG}bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    (f"{_TAG}int", re.compile(_INTEGER), list("-+0123456789")),
    (f"{_TAG}float", re.compile(_FLOAT), list("-+.0123456789")),
    (f"{_TAG}null", re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
)
"""Tag, pattern and first characters, as PyYAML's `add_implicit_resolver` takes them."""
MERGE = (f"{_TAG}merge", re.compile(r"<<$"), ["<"])
"""Not part of YAML 1.2, but configurations share sections by `<<`."""

_BASES = {"0o": 8, "0x": 16, "0b": 2}


def integer(text: str) -> int:
    """The number that a scalar of the tag `int` denotes: `012` is 12. Raises ValueError for what is none."""
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = _BASES.get(digits[:2], 10)
    return sign * int(digits if base == 10 else digits[2:], base)
