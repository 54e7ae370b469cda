"""Shows what the programs of a local cluster print."""

from __future__ import annotations

import sys
import time
from pathlib import Path

LOOK_S = 0.2


def show(folder: Path, *, follow: bool) -> None:
    """Print the lines of all programs, each with its program's name; with `follow` until interrupted."""
    places: dict[Path, int] = {}
    while True:
        for path in sorted(folder.glob("*.log")):
            places[path] = _print_from(path, places.get(path, 0))
        sys.stdout.flush()
        if not follow:
            return
        time.sleep(LOOK_S)


def _print_from(path: Path, place: int) -> int:
    """Print the whole lines from there on; returns where the next begin."""
    with path.open("rb") as file:
        file.seek(place)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    for line in whole.decode(errors="replace").splitlines():
        print(f"{path.stem:12} | {line}")
    return place + len(whole)
