"""Which process of a node ended first: each wrapper notes the end of its process as it happens.

A wrapper itself may end much later than its process, because it waits for the rest of the output. Meanwhile
the other ranks notice that one is gone, and end, too. Without the notes one of them would be blamed. So would
one that the launcher stopped because of another: it sends SIGTERM to those that are left, SIGKILL 30 s later.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILE = "DET_RANK_ENDS"
"""Variable that names the file of the notes, for the wrappers alone: they remove it for what they run.

Set by torch's launcher, and by `pid_client` under those of Horovod and DeepSpeed.
"""


TOLD_TO_END = -1
"""In the place of an exit code: the wrapper was asked to end its process, which may not have ended since."""
_STOPPED = 128 + signal.SIGTERM


class End(NamedTuple):
    """How a rank ended."""

    at_ns: int
    rank: int
    code: int


def begin(notes: Path) -> None:
    """Make the empty file. Raises `FileExistsError` if something is at its path."""
    os.close(os.open(notes, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))


def note(file: str, rank: int, code: int) -> None:
    """Append the end of a rank to the file, or `TOLD_TO_END`; does nothing if its name is empty.

    Called when it has just happened. The clock is the host's, the same for all wrappers of a node.
    """
    if not file:
        return
    line = f"{time.monotonic_ns()} {rank} {code}\n".encode()
    try:
        # One write, so that lines of different wrappers do not mix. The file is not made here: a wrapper that
        # ends after its launcher would leave it behind.
        notes = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
    except OSError:
        # The launcher is gone and has removed it.
        return
    try:
        os.write(notes, line)
    finally:
        os.close(notes)


def first_failure(notes: Path, codes: Mapping[int, int]) -> tuple[int, int]:
    """Return rank and exit code of what failed first.

    Args:
        notes: The file that the wrappers wrote.
        codes: Exit codes of failed wrappers by rank, in the order in which the launcher saw them; not empty.
    """
    ends = _noted(notes)
    # A wrapper that left no note did not outlive its process, so it was killed, and its process with it. But
    # SIGTERM kills only one that is still starting, and only a launcher sends it, after a failure.
    noted = {end.rank for end in ends}
    killed = [(rank, code) for rank, code in codes.items() if rank not in noted and code != _STOPPED]
    failed = [(end.rank, end.code) for end in ends if end.code > 0]
    return [*killed, *failed, *codes.items()][0]


def first_cause(notes: Path) -> tuple[int, int] | None:
    """Return rank and exit code of what failed first by itself; None if the notes name no such rank.

    For a launcher that does not see how its wrappers ended.
    """
    stopped = set()
    for end in _noted(notes):
        if end.code == TOLD_TO_END:
            stopped.add(end.rank)
        elif end.code not in (0, _STOPPED) and end.rank not in stopped:
            return end.rank, end.code
    return None


def _noted(notes: Path) -> list[End]:
    text = notes.read_text() if notes.exists() else ""
    return sorted(End(*map(int, line.split())) for line in text.splitlines())
