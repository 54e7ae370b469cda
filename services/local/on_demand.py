"""Workers that the provisioner started on this host: they outlive it, and end with the cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from services.kit import process_records

STOP_TIMEOUT_S = 15.0
POLL_S = 0.05


def stop_all(folder: Path) -> None:
    """Stop all workers below a folder, with what they run; kill those that do not exit."""
    homes = [home for pool in folder.glob("*") for home in pool.glob("*") if home.is_dir()]
    _send_signal([pid for home in homes if (pid := process_records.running_pid(home))], signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while any(map(process_records.running_pid, homes)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    _send_signal([pid for home in homes for pid in process_records.leftover_pids(home)], signal.SIGKILL)


def _send_signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
