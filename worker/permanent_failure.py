"""Recognises failures that another attempt would repeat, because the command or the code is wrong.

The end of a run's output shows them. Only the last line that a process wrote to stderr counts, since Python
tracebacks and shell errors end with it: a script that continues after such a line failed for another reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from det_contracts.reports import LogLine
from worker.output_spool import last_lines

NOT_STARTED = 127
_BY_EXIT_CODE: dict[int, re.Pattern[str]] = {
    1: re.compile(
        r"(ModuleNotFoundError|SyntaxError|IndentationError|TabError"
        r"|determined\.errors\.(Invalid(Experiment|Configuration|Model|DataType)Exception"
        r"|SearcherMetricMissing))\b"
        r"|\S*python[0-9.]*: (No module named|Error while finding module specification for) "
    ),
    2: re.compile(r"\S*python[0-9.]*: can't open file "),
    126: re.compile(r".*(Permission denied|Exec format error)"),
    NOT_STARTED: re.compile(r".*(not found|No such file or directory)"),
}
_NOT_STARTED = re.compile(
    r"cannot start '.*': "
    r"(Permission denied|No such file or directory|Exec format error|Argument list too long)"
    r"|cannot start \[.*\]: ValueError\('(embedded null byte|illegal environment variable name)'\)",
    re.DOTALL,
)
"""What the shim says of an entrypoint that is a list, which no shell starts, or that the kernel refuses."""
_MAX_LENGTH = 300


def cause(run_dir: Path, exit_code: int | None, message: str = "") -> str:
    """The cause that another attempt would meet again, in the run's own words; "" if unknown.

    `message` is what the shim says of the end.
    """
    if exit_code == NOT_STARTED and _NOT_STARTED.fullmatch(message):
        return message[:_MAX_LENGTH]
    if exit_code not in _BY_EXIT_CODE:
        return ""
    try:
        return cause_in(last_lines(run_dir), exit_code)
    except OSError:
        return ""


def cause_in(lines: Iterable[LogLine], exit_code: int) -> str:
    """The same, given the last lines of a run."""
    last = {line.rank: line for line in lines if line.stdtype == "stderr" and line.text.strip()}
    pattern = _BY_EXIT_CODE[exit_code]
    # A line with a level is a log line, not a traceback.
    texts = [line.text.strip() for line in last.values() if line.level is None]
    causes = (text for text in texts if pattern.match(text))
    return next(causes, "")[:_MAX_LENGTH]
