"""CSV as all parts of the platform write it: no cell is a formula to the program that opens the file.

The web UI has the same rule in `webui/src/parts/file.ts`, and tests of both read the same examples.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any, TextIO

_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""What a formula begins with; spreadsheets of East Asia take the wide forms of these signs for the same."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-(inf|Infinity|nan)", re.ASCII)


def cell(value: Any) -> Any:
    """A value as it may stand in a table: texts that a spreadsheet would work out begin with an apostrophe.

    Numbers stay as they are, also those that are written as texts, and so does everything else.

    Args:
        value: Anything that `csv` writes: a number, a text, None for an empty cell.

    Returns:
        The value, or the text with an apostrophe before it.

    >>> cell("=1+1"), cell("@me"), cell(-0.5), cell("-0.5"), cell("-Infinity"), cell(None)
    ("'=1+1", "'@me", -0.5, '-0.5', '-Infinity', None)
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def write(file: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows behind what the file has already; a header is a row like the others.

    Args:
        file: Where to; on disk it must be opened with `newline=""`.
        rows: The cells of each row, from left to right; None is an empty cell.

    >>> import sys
    >>> write(sys.stdout, [["name", "loss"], ["=cmd()", -1.5], [None, "a,b"]])
    name,loss
    '=cmd(),-1.5
    ,"a,b"
    """
    csv.writer(file, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
