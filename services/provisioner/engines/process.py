"""Workers as processes on this host: for laptops, tests and dedicated hosts.

Each worker has a folder and outlives the provisioner, which finds it again by that folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from services.kit import process_records
from services.provisioner.engines.protocol import EngineRefused, EngineUnavailable, ListedWorker

LOG = "worker.log"
PROVISIONER_ONLY = (
    "STEADFAST_NATS_CREDENTIALS",
    "STEADFAST_HEALTH_PORT",
    "STEADFAST_DATABASE_URL",
    "STEADFAST_LOG_DISK",
    "STEADFAST_POOLS",
)
"""Settings of the provisioner itself.

A worker creates its own credentials with `STEADFAST_WORKER_SIGNING`.
"""
TAIL_BYTES = 2000
"""Number of bytes of an ended worker's output that are read."""


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`provider.process` of a pool."""

    environment: dict[str, str] = {}
    """Additional settings of the workers, besides those of the provisioner's environment."""
    command: tuple[str, ...] = (sys.executable, "-P", "-m", "worker")
    """The command that starts a worker."""


class ProcessEngine:
    """Runs workers as processes. See the module docstring."""

    def __init__(self, pool: str, slots: int, home: Path, settings: ProcessSettings) -> None:
        """`home` contains a folder for each worker of this pool."""
        self._pool = pool
        self._slots = slots
        self._home = home
        self._settings = settings
        self._children: list[subprocess.Popen[bytes]] = []

    async def list_workers(self) -> Sequence[ListedWorker]:
        """The workers with folders. Raises `EngineUnavailable` if these cannot be read."""
        try:
            return await asyncio.to_thread(self._list_workers)
        except OSError as error:
            raise EngineUnavailable(str(error)) from None

    def _list_workers(self) -> Sequence[ListedWorker]:
        # Polled, so that ended children do not stay zombies.
        self._children = [child for child in self._children if child.poll() is None]
        if not self._home.exists():
            return []
        return [self._listed_worker(folder) for folder in sorted(self._home.iterdir()) if folder.is_dir()]

    def _listed_worker(self, folder: Path) -> ListedWorker:
        pid, noted = process_records.running_pid(folder), process_records.recorded_pid(folder)
        if not pid and not noted and not process_records.has_locked(folder):
            # The provisioner was killed before it recorded the process, which may be about to take its lock.
            pid = next(iter(process_records.leftover_pids(folder)), 0)
        ended = f"{f'process {noted}' if noted else 'it'} has ended: {_last_line(folder / LOG)}"
        return ListedWorker(
            worker_id=folder.name,
            handle=str(pid or noted or ""),
            phase="running" if pid else "over",
            detail=f"process {pid}" if pid else ended,
        )

    async def wait_for_change(self) -> None:
        """Never returns: nothing reports changes, so the regular checks have to find them."""
        await asyncio.Event().wait()

    async def start(self, worker_id: str) -> str:
        """Start a process. Raises `EngineRefused` if that is impossible."""
        try:
            return await asyncio.to_thread(self._start, worker_id)
        except OSError as error:
            raise EngineRefused(f"the worker cannot be started on this host: {error}") from None

    def _start(self, worker_id: str) -> str:
        folder = self._home / worker_id
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (folder / LOG).open("ab") as output:
            child = subprocess.Popen(  # noqa: S603 - what the cluster's configuration names
                self._settings.command,
                env=self._environment(worker_id, folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._children.append(child)
        # After the start: if this process is killed in between, `_listed_worker` finds the worker by what it
        # runs.
        process_records.record(folder, child.pid)
        return f"process {child.pid}"

    def _environment(self, worker_id: str, folder: Path) -> Mapping[str, str]:
        own = {name: text for name, text in os.environ.items() if name not in PROVISIONER_ONLY}
        return own | {
            "STEADFAST_WORKER_ID": worker_id,
            "STEADFAST_WORKER_POOL": self._pool,
            "STEADFAST_WORKER_SLOTS": str(self._slots),
            "STEADFAST_WORKER_HOME": str(folder / process_records.HOME),
            **self._settings.environment,
        }

    async def stop(self, listed_worker: ListedWorker) -> None:
        """Ask the worker to end. It ends what it runs and informs the cluster."""
        pid = process_records.running_pid(self._home / listed_worker.worker_id)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    async def forget(self, listed_worker: ListedWorker) -> None:
        """End what a killed worker has left behind, and remove its folder."""
        await asyncio.to_thread(_clear, self._home / listed_worker.worker_id)


def _clear(folder: Path) -> None:
    for pid in process_records.leftover_pids(folder):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "it said nothing"
