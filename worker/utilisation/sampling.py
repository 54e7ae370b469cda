"""Measures what the processes of a run use, from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from services.kit import host_processes
from worker.utilisation.gpus import Gpus

PROC = Path("/proc")
TICKS_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
RANK = b"RANK="
GIGA = 1e9


class ProcessSample(msgspec.Struct, frozen=True):
    """A process at one moment."""

    name: str
    """`rank3`, or the worker's id for a process without a rank."""
    cpu_s: float
    """CPU time since the process began."""
    memory_bytes: int


class Sampler:
    """Samples of one run. Rates are means since the previous sample."""

    def __init__(
        self,
        worker_id: str,
        gpus: Gpus,
        uuids: Collection[str] = (),
        proc: Path = PROC,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`uuids` are the GPUs that the run holds."""
        self._worker = worker_id
        self._gpus = gpus
        self._uuids = uuids
        self._proc = proc
        self._clock = clock
        self._names: dict[tuple[int, bytes], str] = {}
        self._before: dict[tuple[int, bytes], ProcessSample] = {}
        self._at = clock()

    def sample(self, pids: Collection[int]) -> dict[str, float]:
        """Return figures by name: `cpu_cores.rank0`, `memory_gb.rank0`, and those that `Gpus` measures."""
        now = self._clock()
        seconds = max(now - self._at, 1e-9)
        processes = {
            key: process for pid in pids if (entry := self._read_process(pid)) for key, process in (entry,)
        }
        metrics = dict[str, float]()
        for key, process in processes.items():
            before = self._before.get(key)
            spent = process.cpu_s - (before.cpu_s if before is not None else 0.0)
            add(metrics, f"cpu_cores.{process.name}", spent / seconds)
            add(metrics, f"memory_gb.{process.name}", process.memory_bytes / GIGA)
        self._names = {key: process.name for key, process in processes.items()}
        first, self._before, self._at = not self._before, processes, now
        if first:
            # The time before the first sample is unknown, so there is no rate yet.
            metrics = {name: value for name, value in metrics.items() if not name.startswith("cpu")}
        names = {pid: process.name for (pid, _), process in processes.items()}
        return metrics | self._gpus.sample(self._worker, self._uuids, names)

    def _read_process(self, pid: int) -> tuple[tuple[int, bytes], ProcessSample] | None:
        """A process, identified by its pid and start time; None if it is gone."""
        try:
            fields = (self._proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        key = pid, fields[19]
        name = self._names.get(key) or self._name(pid)
        cpu_s = (int(fields[11]) + int(fields[12])) * TICKS_S
        return key, ProcessSample(name, cpu_s, int(fields[21]) * PAGE_BYTES)

    def _name(self, pid: int) -> str:
        """Name a process by the rank that launchers put into its environment."""
        try:
            environment = (self._proc / str(pid) / "environ").read_bytes()
        except OSError:
            return self._worker
        for variable in environment.split(b"\0"):
            if variable.startswith(RANK) and variable[len(RANK) :].isdigit():
                return f"rank{int(variable[len(RANK) :])}"
        return self._worker


def add(metrics: dict[str, float], name: str, value: float) -> None:
    """Add up what several processes with the same name use."""
    metrics[name] = metrics.get(name, 0.0) + value


def processes_of(shim: int, command: int, id_file: Path | None = None, proc: Path = PROC) -> set[int]:
    """The live processes of a run: the command, which leads its session, and all below it or its shim.

    If `id_file` names a container, its processes are included; the engine has started them elsewhere.
    """
    pids = host_processes.descendants(shim, command)
    try:
        id = id_file.read_bytes().strip() if id_file is not None else b""
    except OSError:
        return pids
    return pids | {pid for pid in host_processes.all_pids() if id and id in _control_groups(proc, pid)}


def _control_groups(proc: Path, pid: int) -> bytes:
    """The control groups of a process; engines name them after the container's id."""
    try:
        return (proc / str(pid) / "cgroup").read_bytes()
    except OSError:
        return b""
