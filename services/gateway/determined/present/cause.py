"""Extracts the cause of a failure from the last log lines of a rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from services.catalogue.peers import Line

MOST_CHARACTERS = 2000
"""Maximum length of a line at the head of a page."""
TRACEBACK = "Traceback (most recent call last)"
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
ALARMING = ("WARNING", "ERROR", "CRITICAL")
NEAR = 3
"""A traceback begins within this many lines of the first error, if there is one."""
_escape = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_rank = re.compile(r"^\[rank\d+\]: ?")
_frame = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_foreign = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<")
_words = [
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"cuda.*out of memory|OutOfMemoryError", "GPU memory ran out"),
        (r"MemoryError|cannot allocate memory|std::bad_alloc", "memory ran out"),
        (r"no space left on device", "the disk is full"),
        (r"ModuleNotFoundError|ImportError", "something cannot be imported"),
        (r"FileNotFoundError|no such file or directory", "a file is missing"),
        (r"PermissionError|permission denied", "something may not be read or written"),
        (r"nccl|gloo|connection (?:reset|closed) by peer|collective", "it lost the other ranks"),
        (r"KeyboardInterrupt|SIGTERM", "it was told to stop"),
    )
]
_class = re.compile(r"(?:[\w.]+\.)?(?P<name>[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Fault))\b")


class Place(msgspec.Struct, frozen=True):
    """A place in the code."""

    file: str
    line: int
    function: str


class Cause(msgspec.Struct, frozen=True):
    """What a rank's last lines reveal about its failure."""

    first: Line
    """The first line of the failure."""
    said: Line
    """The line that states the error."""
    place: Place | None
    before: Line | None
    """What led to the failure: the last warning of the same rank, or else the line before."""


def plain(text: str) -> str:
    """Strip colours, control characters and PyTorch's rank prefix from a line."""
    return _rank.sub("", _escape.sub("", text))


def cause(lines: Sequence[Line], before: Sequence[Line]) -> Cause:
    """Find the cause in one rank's lines from its first error on, and those `before` it, oldest first."""
    texts = [plain(line.text) for line in lines]
    start = next((at for at, text in enumerate(texts[: NEAR + 1]) if text.startswith(TRACEBACK)), None)
    end, frames = (0, []) if start is None else _traceback(texts, start)
    ours = [one for one in frames if not _foreign.search(one.file)] or frames
    warned = [line for line in before if line.level in ALARMING or "warning" in line.text[:80].lower()]
    led = (warned or list(before))[-1:]
    return Cause(lines[0], lines[end], ours[-1] if ours else None, led[0] if led else None)


def _traceback(texts: Sequence[str], start: int) -> tuple[int, list[Place]]:
    """The last line of a traceback, or of the last in a chain of tracebacks, and its frames."""
    frames: list[Place] = []
    at = start + 1
    while at < len(texts):
        text = texts[at]
        if found := _frame.match(text):
            frames.append(Place(found["file"], int(found["line"]), found["function"] or ""))
        elif text and not text[0].isspace():
            following = _next_traceback(texts, at)
            if following is None:
                return at, frames
            at, frames = following, []
        at += 1
    return len(texts) - 1, frames


def _next_traceback(texts: Sequence[str], end: int) -> int | None:
    ahead = range(end + 1, min(end + 6, len(texts)))
    if any(texts[at].startswith(CHAINED) for at in ahead):
        return next((at for at in ahead if texts[at].startswith(TRACEBACK)), None)
    return None


def in_words(text: str) -> str:
    """The error of a line in a few words; the exception's name if it is not a known kind."""
    known = next((words for pattern, words in _words if pattern.search(text)), "")
    if known:
        return known
    found = _class.search(text)
    return found["name"] if found else ""


def shown(line: Line, at: str) -> dict[str, Any]:
    """A line in short form; `at` is its time."""
    return {
        "id": str(line.id),
        "number": line.number,
        "timestamp": at,
        "level": line.level,
        "log": plain(line.text)[:MOST_CHARACTERS],
    }
