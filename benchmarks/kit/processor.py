"""Processor time of the programs of a local cluster."""

from __future__ import annotations

import contextlib
from pathlib import Path

from services.local.home import Home
from services.local.supervisor import SERVICES


def processor_ms(home: Home) -> dict[str, float]:
    """What each program of a cluster has spent so far, without scripts and their shims."""
    pids, spent = home.read("processes.json") or {}, {}
    for name in ("broker", *SERVICES):
        spent[name] = _of_threads(pids[name])
    workers = [pid for name, pid in pids.items() if name not in ("supervisor", *spent)]
    return spent | {"worker": sum(map(_of_threads, workers))}


def _of_threads(pid: int) -> float:
    # Finer than the ticks of `stat`: a few trials cost less than one tick.
    spent = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            spent += int((thread / "schedstat").read_text().split()[0])
    return spent / 1e6
