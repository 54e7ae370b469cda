"""Workers that the provisioner started on this host: they outlive it, and end with the cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from services.kit import started

PATIENCE_S = 15.0
LOOK_S = 0.05


def end_all(folder: Path) -> None:
    """Stop all workers below a folder, with what they run; kill those that do not exit."""
    homes = [home for pool in folder.glob("*") for home in pool.glob("*") if home.is_dir()]
    _signal([pid for home in homes if (pid := started.running(home))], signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE_S
    while any(map(started.running, homes)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    _signal([pid for home in homes for pid in started.left_by(home)], signal.SIGKILL)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
