"""Load of the machine: processors, memory, disks, network, GPUs (Trainer spec, section 16).

Rates are means since the previous sample. Metrics that a machine does not provide are omitted.
"""

from __future__ import annotations

import contextlib
import pathlib
import time
from collections.abc import Callable
from typing import Any

GIGA = 1e9
SECTOR_BYTES = 512
"""Sector size of /proc/diskstats, independent of the disk's own."""
_NO_DISKS = ("loop", "ram", "zram", "dm-", "md")


class Machine:
    """Samples the machine that this process runs on."""

    def __init__(
        self,
        proc: pathlib.Path = pathlib.Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
        gpus: Gpus | None = None,
    ) -> None:
        self._proc = proc
        self._clock = clock
        self._gpus = gpus if gpus is not None else Gpus()
        self._at, self._before = clock(), self._counters()

    def sample(self) -> dict[str, float]:
        """Return per cent, gigabytes (10^9), bytes or operations per second, or gigabits per second.

        For each GPU: utilization in per cent and free memory in bytes. The name ends in the GPU's UUID.
        """
        now, counters = self._clock(), self._counters()
        seconds = max(now - self._at, 1e-9)
        elapsed = {name: value - self._before.get(name, value) for name, value in counters.items()}
        self._at, self._before = now, counters
        figures = self._gpus.sample() | self._memory()
        if elapsed.get("cpu_total"):
            figures["cpu_util_simple"] = 100.0 * (1.0 - elapsed["cpu_idle"] / elapsed["cpu_total"])
        for name, counter, scale in (
            ("net_throughput_sent", "net_sent", 8 / GIGA),
            ("net_throughput_recv", "net_recv", 8 / GIGA),
            ("disk_iops", "disk_operations", 1.0),
            ("disk_throughput_read", "disk_read", SECTOR_BYTES),
            ("disk_throughput_write", "disk_write", SECTOR_BYTES),
        ):
            if counter in elapsed:
                figures[name] = elapsed[counter] * scale / seconds
        return figures

    def _lines(self, name: str) -> list[list[str]]:
        try:
            # In net/dev a large number may follow the colon without a blank.
            return [line.replace(":", ": ").split() for line in (self._proc / name).read_text().splitlines()]
        except OSError:
            return []

    def _memory(self) -> dict[str, float]:
        for words in self._lines("meminfo"):
            if words[0] == "MemAvailable:":
                return {"free_memory": int(words[1]) * 1024 / GIGA}
        return {}

    def _counters(self) -> dict[str, float]:
        return self._cpu() | self._network() | self._disks()

    def _cpu(self) -> dict[str, float]:
        for words in self._lines("stat")[:1]:
            # Columns nine and ten are guest time, which the first two columns already include.
            ticks = [int(word) for word in words[1:9]]
            return {"cpu_total": sum(ticks), "cpu_idle": sum(ticks[3:5])}
        return {}

    def _network(self) -> dict[str, float]:
        # The first two lines are headings.
        rows = [words for words in self._lines("net/dev")[2:] if words[0] != "lo:"]
        if not rows:
            return {}
        return {"net_recv": sum(int(w[1]) for w in rows), "net_sent": sum(int(w[9]) for w in rows)}

    def _disks(self) -> dict[str, float]:
        rows = self._lines("diskstats")
        names = {words[2] for words in rows}
        whole = [w for w in rows if not w[2].startswith(_NO_DISKS) and not _is_partition(w[2], names)]
        if not whole:
            return {}
        return {
            "disk_operations": sum(int(w[3]) + int(w[7]) for w in whole),
            "disk_read": sum(int(w[5]) for w in whole),
            "disk_write": sum(int(w[9]) for w in whole),
        }


def _is_partition(name: str, names: set[str]) -> bool:
    """Whether this is a partition of another listed disk, whose figures include it."""
    disk = name.rstrip("0123456789")
    return disk != name and (disk in names or disk.removesuffix("p") in names)


class Gpus:
    """NVIDIA GPUs, if nvidia-ml-py and the driver are available."""

    def __init__(self) -> None:
        self._handles: list[tuple[str, Any]] = []
        self._nvml: Any = None
        # Without a driver each of these calls may fail in its own way.
        with contextlib.suppress(Exception):
            import pynvml

            pynvml.nvmlInit()
            for index in range(pynvml.nvmlDeviceGetCount()):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                self._handles.append((str(pynvml.nvmlDeviceGetUUID(handle)), handle))
            self._nvml = pynvml

    def sample(self) -> dict[str, float]:
        """Return utilization and free memory of each GPU. GPUs that do not answer are omitted."""
        figures = {}
        for uuid, handle in self._handles:
            with contextlib.suppress(Exception):
                figures[f"gpu_util.{uuid}"] = float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
                figures[f"gpu_free_memory.{uuid}"] = float(self._nvml.nvmlDeviceGetMemoryInfo(handle).free)
        return figures
