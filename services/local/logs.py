"""Shows the output of a local cluster's programs."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

POLL_S = 0.2
TAIL_BYTES = 64 * 1024
LAST_LINES = 5
REFUSAL = r"settings\.refused|^\w+: STEADFAST_|invalid settings:"
"""Log lines of a program that a restart cannot help."""


def show(folder: Path, *, follow: bool) -> None:
    """Print the lines of all programs, each with its program's name; with `follow`, until interrupted."""
    offsets: dict[Path, int] = {}
    while True:
        for path in sorted(folder.glob("*.log")):
            offsets[path] = _print_from(path, offsets.get(path, 0))
        sys.stdout.flush()
        if not follow:
            return
        time.sleep(POLL_S)


def _print_from(path: Path, offset: int) -> int:
    """Print the complete lines from an offset on. Returns the offset of the next line."""
    offset = _valid_offset(path, offset)
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    complete_lines = data[: data.rfind(b"\n") + 1]
    for line in complete_lines.decode(errors="replace").splitlines():
        print(f"{path.stem:12} | {line}")
    return offset + len(complete_lines)


def _valid_offset(path: Path, offset: int) -> int:
    """Return the offset, or 0 if the log was truncated meanwhile."""
    return offset if offset <= path.stat().st_size else 0


def last_lines(path: Path) -> list[str]:
    """Return the last lines of a program's output; empty if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - TAIL_BYTES, 0))
            return file.read().decode(errors="replace").splitlines()[-LAST_LINES:]
    except OSError:
        return []


def log_sizes(folder: Path) -> dict[Path, int]:
    """Return the current size of each program's log."""
    return {path: path.stat().st_size for path in folder.glob("*.log")}


def refusals(folder: Path, since: Mapping[Path, int]) -> list[str]:
    """Return the settings errors that programs logged after the given offsets."""
    rows = []
    for path in sorted(folder.glob("*.log")):
        with path.open("rb") as file:
            file.seek(_valid_offset(path, since.get(path, 0)))
            lines = file.read(TAIL_BYTES).decode(errors="replace").splitlines()
        rows += [f"  {path.stem}: {line}" for line in lines if re.search(REFUSAL, line)][:1]
    return rows
