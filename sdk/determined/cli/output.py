"""Prints results: tables, CSV, JSON, YAML, and colored lines (client spec, section 3)."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

from det_contracts import spreadsheet
from determined.cli.failure import Failure

Row = Sequence[Any]

_GREEN, _YELLOW, _RED = "32", "33", "31"
_KEPT_IN_LOGS = re.compile(r"(\033\[[0-9;:]{0,40}m)")
"""Colors and styles, the one kind of control sequence that scripts print for readers."""


def table(headers: Sequence[str], rows: Sequence[Row], *, as_csv: bool = False) -> None:
    """Print rows: as CSV if requested, with rules on a terminal, otherwise as plain text for pipes.

    None becomes an empty cell.
    """
    if as_csv:
        write_csv(sys.stdout, headers, [[_for_terminal(value) for value in row] for row in rows])
    elif sys.stdout.isatty():
        _terminal_table(headers, rows)
    else:
        print(plain_table(headers, rows))


def write_csv(file: TextIO, headers: Sequence[str], rows: Sequence[Row]) -> None:
    """Write a header line and the rows.

    None becomes an empty cell, and cells are made safe for spreadsheets.
    """
    spreadsheet.write(file, [headers, *rows])


def plain_table(headers: Sequence[str], rows: Sequence[Row]) -> str:
    """Format columns separated by `|`, with an underlined header and right-aligned numbers."""
    cells = [[_cell(value) for value in row] for row in rows]
    columns = range(len(headers))
    widths = [max(len(line[at]) for line in [list(headers), *cells]) for at in columns]
    at_right = [_is_numeric(row[at] for row in rows) for at in columns]

    def line(texts: Sequence[str]) -> str:
        aligned = [
            texts[at].rjust(widths[at]) if at_right[at] else texts[at].ljust(widths[at]) for at in columns
        ]
        return f" {' | '.join(aligned)}".rstrip()

    rule = "+".join("-" * (width + 2) for width in widths)
    return "\n".join([line(headers), rule, *map(line, cells)])


def print_json(value: Any) -> None:
    """Print indented JSON with sorted keys, colored on a terminal if `DET_CLI_COLORIZE` is set."""
    text = json.dumps(value, indent=2, sort_keys=True)
    if os.environ.get("DET_CLI_COLORIZE", "").lower() in ("1", "true") and sys.stdout.isatty():
        import rich

        rich.print_json(text, ensure_ascii=True)
    else:
        print(text)


def print_yaml(value: Any) -> None:
    """Print block-style YAML. Keys keep their order."""
    from determined import yamlfile

    print(_for_terminal(yamlfile.dump(value)), end="")


def good(text: str, file: TextIO | None = None) -> None:
    """Print a green line."""
    _coloured(text, _GREEN, file or sys.stdout)


def warn(text: str) -> None:
    """Print a yellow line on stderr."""
    _coloured(text, _YELLOW, sys.stderr)


def complain(text: str) -> None:
    """Print a red line on stderr."""
    _coloured(text, _RED, sys.stderr)


def confirm(question: str, instead: str = "give --yes where nobody can answer") -> bool:
    """Ask a yes/no question on stderr. Ctrl-C means no.

    Args:
        question: The question.
        instead: What to do if there is no input.

    Returns:
        Whether the answer is yes.

    Raises:
        Failure: If the input has ended. Returning no would make a script take the refusal for success.
    """
    # On stderr, so that the output of a command can be piped while it asks.
    print(f"{question} [y/n] ", end="", file=sys.stderr, flush=True)
    try:
        return input().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return False
    except EOFError:
        print(file=sys.stderr)
        raise Failure(f"there is no answer, because the input has ended; {instead}") from None


def harmless(text: str) -> str:
    """Escape control characters in a text, except newlines and tabs.

    Names, notes and errors come from other users, and a terminal would execute the control sequences in them.

    >>> print(harmless("a" + chr(27) + "[2J"))
    a\\x1b[2J
    """
    return "".join(c if c in "\n\t" or not _is_control(c) else ascii(c)[1:-1] for c in text)


def log_line(text: str) -> str:
    """Return a line of a log as it may be printed: unchanged, but on a terminal it controls colors alone.

    Logs hold what other users' scripts print. A terminal would execute it: write the clipboard, or answer as
    if the reader had typed.
    """
    if not sys.stdout.isatty():
        return text
    parts = _KEPT_IN_LOGS.split(text)
    return "".join(part if at % 2 else harmless(part) for at, part in enumerate(parts))


def _for_terminal(value: Any) -> Any:
    """Return a value for a file or a pipe unchanged, and a text for a terminal without control characters."""
    return harmless(value) if isinstance(value, str) and sys.stdout.isatty() else value


def _is_control(char: str) -> bool:
    # Includes Cf, because some of these characters reverse the text direction.
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _coloured(text: str, colour: str, file: TextIO) -> None:
    text = harmless(text)
    print(f"\033[{colour}m{text}\033[0m" if file.isatty() else text, file=file, flush=True)


def _cell(value: Any) -> str:
    return "" if value is None else harmless(str(value).replace("\n", " "))


def _is_numeric(values: Any) -> bool:
    present = [value for value in values if value is not None]
    # True and False are numbers in Python, but are not aligned like numbers.
    return bool(present) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in present
    )


def _terminal_table(headers: Sequence[str], rows: Sequence[Row]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD)
    for at, header in enumerate(headers):
        justify = "right" if _is_numeric(row[at] for row in rows) else "left"
        # `fold` breaks long values; the default would cut off ids that a user wants to copy.
        shown.add_column(header, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        # Text, because rich reads square brackets in a plain string as markup.
        shown.add_row(*(Text(_cell(value)) for value in row))
    Console().print(shown)
