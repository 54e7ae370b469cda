"""Extracts the cause of a failure from the last log lines of a rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from services.catalogue.peers import LogLine

MAX_LINE_CHARACTERS = 2000
"""Maximum length of a line at the head of a page."""
TRACEBACK = "Traceback (most recent call last)"
CHAINED_TRACEBACK = ("During handling of the above exception", "The above exception was the direct cause")
WARNING_LEVELS = ("WARNING", "ERROR", "CRITICAL")
MAX_LINES_BEFORE_TRACEBACK = 3
"""A traceback begins within this many lines of the first error, if there is one."""
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_RANK_PREFIX = re.compile(r"^\[rank\d+\]: ?")
_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_LIBRARY_FILE = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<")
_KNOWN_ERRORS = [
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"cuda(?:(?!cuda).)*out of memory|OutOfMemoryError", "GPU memory ran out"),
        (r"MemoryError|cannot allocate memory|std::bad_alloc", "memory ran out"),
        (r"no space left on device", "the disk is full"),
        (r"ModuleNotFoundError|ImportError", "something cannot be imported"),
        (r"FileNotFoundError|no such file or directory", "a file is missing"),
        (r"PermissionError|permission denied", "something may not be read or written"),
        (r"nccl|gloo|connection (?:reset|closed) by peer|collective", "it lost the other ranks"),
        (r"KeyboardInterrupt|SIGTERM", "it was told to stop"),
    )
]
# Each begins only where a word does, so that no text is gone over again from each of its characters.
_ERROR_CLASS = re.compile(r"\b_*(?P<name>[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Fault))\b")


class CodeLocation(msgspec.Struct, frozen=True):
    """A place in the code."""

    file: str
    line: int
    function: str


class Cause(msgspec.Struct, frozen=True):
    """What a rank's last lines reveal about its failure."""

    first: LogLine
    """The first line of the failure."""
    error_line: LogLine
    """The line that states the error."""
    location: CodeLocation | None
    before: LogLine | None
    """What led to the failure: the last warning of the same rank, or else the line before."""


def strip_formatting(text: str) -> str:
    """Strip colours, control characters and PyTorch's rank prefix from a line."""
    return _RANK_PREFIX.sub("", _ESCAPE.sub("", text))


def find_cause(lines: Sequence[LogLine], before: Sequence[LogLine]) -> Cause:
    """Find the cause in one rank's lines from its first error on, and those `before` it, oldest first."""
    texts = [strip_formatting(line.text) for line in lines]
    start = next(
        (at for at, text in enumerate(texts[: MAX_LINES_BEFORE_TRACEBACK + 1]) if text.startswith(TRACEBACK)),
        None,
    )
    end, frames = (0, []) if start is None else _traceback(texts, start)
    ours = [frame for frame in frames if not _LIBRARY_FILE.search(frame.file)] or frames
    warned = [line for line in before if line.level in WARNING_LEVELS or "warning" in line.text[:80].lower()]
    preceding = (warned or list(before))[-1:]
    return Cause(lines[0], lines[end], ours[-1] if ours else None, preceding[0] if preceding else None)


def _traceback(texts: Sequence[str], start: int) -> tuple[int, list[CodeLocation]]:
    """The last line of a traceback, or of the last in a chain of tracebacks, and its frames."""
    frames: list[CodeLocation] = []
    at = start + 1
    while at < len(texts):
        text = texts[at]
        if frame_match := _FRAME.match(text):
            frames.append(
                CodeLocation(frame_match["file"], int(frame_match["line"]), frame_match["function"] or "")
            )
        elif text and not text[0].isspace():
            following = _next_traceback(texts, at)
            if following is None:
                return at, frames
            at, frames = following, []
        at += 1
    return len(texts) - 1, frames


def _next_traceback(texts: Sequence[str], end: int) -> int | None:
    ahead = range(end + 1, min(end + 6, len(texts)))
    if any(texts[at].startswith(CHAINED_TRACEBACK) for at in ahead):
        return next((at for at in ahead if texts[at].startswith(TRACEBACK)), None)
    return None


def describe_error(text: str) -> str:
    """The error of a line in a few words; the exception's name if it is not a known kind."""
    description = next((words for pattern, words in _KNOWN_ERRORS if pattern.search(text)), "")
    if description:
        return description
    error_class = _ERROR_CLASS.search(text)
    return error_class["name"] if error_class else ""


def short_line(line: LogLine, at: str) -> dict[str, Any]:
    """A line in short form; `at` is its time."""
    return {
        "id": str(line.id),
        "number": line.number,
        "timestamp": at,
        "level": line.level,
        "log": strip_formatting(line.text)[:MAX_LINE_CHARACTERS],
    }
