"""Failures that another try would meet again: the command or the code is wrong, not the moment.

What a run printed last says so. Only the last line that a process wrote to stderr counts, as Python's
tracebacks and the shell end with it: a script that goes on after such a line failed of something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from det_contracts.reports import LogLine
from worker.output_spool import last_lines

_BY_EXIT_CODE: dict[int, re.Pattern[str]] = {
    1: re.compile(
        r"(ModuleNotFoundError|SyntaxError|IndentationError|TabError"
        r"|determined\.errors\.Invalid(Experiment|Configuration|Model|DataType)Exception)\b"
        r"|\S*python[0-9.]*: (No module named|Error while finding module specification for) "
    ),
    2: re.compile(r"\S*python[0-9.]*: can't open file "),
    126: re.compile(r".*(Permission denied|Exec format error)"),
    127: re.compile(r".*(not found|No such file or directory)"),
}
_LONGEST = 300


def cause(run_dir: Path, exit_code: int | None) -> str:
    """What another try would meet again, in the words of the run; empty if there is no telling."""
    if exit_code not in _BY_EXIT_CODE:
        return ""
    try:
        return cause_in(last_lines(run_dir), exit_code)
    except OSError:
        return ""


def cause_in(lines: Iterable[LogLine], exit_code: int) -> str:
    """The same, of the lines that a run ended with."""
    last = {line.rank: line for line in lines if line.stdtype == "stderr" and line.text.strip()}
    pattern = _BY_EXIT_CODE[exit_code]
    # A line with a level is a log's, not a traceback's.
    texts = [line.text.strip() for line in last.values() if line.level is None]
    causes = (text for text in texts if pattern.match(text))
    return next(causes, "")[:_LONGEST]
