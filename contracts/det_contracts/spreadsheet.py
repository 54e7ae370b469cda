"""CSV output for all parts of the platform. No cell is interpreted as a formula by spreadsheet programs.

The web UI implements the same rule in `webui/src/parts/file.ts`, and the tests of both use the same examples.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any, TextIO

_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""Characters that start a formula. East Asian spreadsheets treat the full-width forms alike."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|-(inf|Infinity|nan)", re.ASCII)


def cell(value: Any) -> Any:
    """Return a value that is safe in a table: formula-like strings get a leading apostrophe.

    Numbers, including numbers as strings, and all other values are unchanged.

    Args:
        value: Anything that `csv` writes: a number, a string, or None for an empty cell.

    Returns:
        The value, or the string with a leading apostrophe.

    >>> cell("=1+1"), cell("@me"), cell(-0.5), cell("-0.5"), cell("-Infinity"), cell(None)
    ("'=1+1", "'@me", -0.5, '-0.5', '-Infinity', None)
    """
    # Numbers stay numbers, since a table of losses is full of negative ones.
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def write(file: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    """Append rows to a file; a header is a row like any other.

    Args:
        file: The target. A file on disk must be opened with `newline=""`.
        rows: The cells of each row, from left to right. None is an empty cell.

    >>> import sys
    >>> write(sys.stdout, [["name", "loss"], ["=cmd()", -1.5], [None, "a,b"]])
    name,loss
    '=cmd(),-1.5
    ,"a,b"
    """
    csv.writer(file, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
