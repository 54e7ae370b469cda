"""Finds the environment variables that an experiment's code sets, by looking through its text.

A script may set a variable and then import a package that reads it. A template has loaded the package before
that, without the variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

MAX_ENTRIES = 5000
MAX_BYTES = 2**24
"""Code with more files and folders than this, or more text, is not searched and starts cold."""
MAX_MENTIONS = 5000
"""Nor is code that mentions the environment more often: a script could keep the worker busy for minutes."""
SEEN_BEFORE, SEEN_AFTER = 100, 300
"""Bytes around a mention of the environment that tell what is done with it."""
_NATIVE = re.compile("(?:OMP|GOMP|KMP|MKL|OPENBLAS|GOTO|BLIS|NPY|ATEN|TORCH|PYTORCH|TF|XLA)_")
_MENTION = re.compile(rb"\b(?:environb?|putenv|unsetenv|dotenv)\b")
_ITEM = re.compile(rb"""\s*\[\s*[bru]?(?:'(\w+)'|"(\w+)")\s*\]\s*([|+]?=(?!=))?""")
_METHOD = re.compile(
    rb"""\s*\.\s*(?:setdefault|pop|__setitem__|__delitem__)\s*\(\s*[bru]?(?:'(\w+)'|"(\w+)")\s*[,)]"""
)
_CALL = re.compile(rb"""\s*\(\s*[bru]?(?:'(\w+)'|"(\w+)")\s*[,)]""")
_READ_ITEM = re.compile(rb"\s*\[[^\[\]\n]*\](?!\s*[|+]?=(?!=))")
_CHANGE = re.compile(rb"\s*(?:\[|\|=|\.\s*(?:setdefault|pop|popitem|update|clear|__\w+)\b)|\s+as\b")
_ENDS_LINE = re.compile(rb"[ \t\r]*(?:[\n;#]|\Z)")


def is_native(name: str) -> bool:
    """Whether compiled libraries read a variable when they are loaded, which cannot be seen from Python."""
    return _NATIVE.match(name) is not None


def set_by_code(folder: Path) -> frozenset[str] | None:
    """Names of the variables that the code in a folder sets.

    Returns None if the text does not show their names, or if there is too much to search.
    """
    names: set[str] = set()
    left_bytes, left_mentions = MAX_BYTES, MAX_MENTIONS
    for path in _files(folder):
        left_bytes -= os.stat(path).st_size if path else left_bytes + 1
        if left_bytes < 0:
            return None
        for name in _set_by_text(Path(path).read_bytes()):
            left_mentions -= 1
            if name == "" or left_mentions < 0:
                return None
            names |= {name} if name else set()
    return frozenset(names)


def _files(folder: Path) -> Iterator[str]:
    """The files with code; "" at the end if there are too many to look at."""
    left = MAX_ENTRIES
    for where, folders, files in os.walk(folder):
        left -= len(folders) + len(files)
        if left < 0:
            yield ""
            return
        paths = (os.path.join(where, name) for name in files if name.endswith(".py"))
        # Not a pipe, which would be waited for.
        yield from filter(os.path.isfile, paths)


def _set_by_text(text: bytes) -> Iterator[str | None]:
    """For each mention of the environment: the variable that it sets; "" if its name is not there, None if
    none is set.
    """
    # All mentions have this in them, and most files have not.
    for mention in _MENTION.finditer(text) if b"env" in text else ():
        earliest = max(mention.start() - SEEN_BEFORE, 0)
        begin = max(text.rfind(b"\n", earliest, mention.start()) + 1, earliest)
        before = b"".join(text[begin : mention.start()].split())
        after = text[mention.end() : mention.end() + SEEN_AFTER]
        yield _set_at(mention[0], before, after)


def _set_at(word: bytes, before: bytes, after: bytes) -> str | None:
    """The variable that is set at a mention; "" if its name is not there, None if none is set.

    `before` is the begin of the line, without spaces.
    """
    if word == b"dotenv":
        return ""
    if word in (b"putenv", b"unsetenv"):
        return _name(_CALL.match(after))
    owner = before.removesuffix(b"os.")
    if item := _ITEM.match(after):
        # The first of several targets, or after `del`.
        begins = owner in (b"", b"del") or owner.endswith((b";", b":", b";del", b":del"))
        return _name(item) if item[3] or begins else None
    if method := _METHOD.match(after):
        return _name(method)
    if _CHANGE.match(after) and not _READ_ITEM.match(after):
        return ""
    if owner.endswith(b"patch.dict("):
        return ""
    # Under another name, it could be changed anywhere.
    renamed = owner.endswith(b"=") and not owner.endswith((b"==", b"!="))
    return "" if renamed and _ENDS_LINE.match(after) else None


def _name(match: re.Match[bytes] | None) -> str:
    return "" if match is None else (match[1] or match[2]).decode("utf-8", "replace")
