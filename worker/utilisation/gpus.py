"""NVIDIA GPUs, if nvidia-ml-py and the driver are installed; otherwise none."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Any

from worker.nvidia import bindings

GIGA = 1e9


def load_nvml() -> Any:
    """The initialised bindings, or None without bindings or driver."""
    # With a driver that does not work, these calls fail, each with a different exception.
    with contextlib.suppress(Exception):
        if (nvml := bindings()) is not None:
            nvml.nvmlInit()
            return nvml
    return None


class Gpus:
    """Use and memory of GPUs, and the GPU memory of each process."""

    def __init__(self, nvml: Any) -> None:
        """`nvml` is the result of `load_nvml`."""
        self._nvml = nvml

    def sample(self, worker_id: str, uuids: Collection[str], names: Mapping[int, str]) -> dict[str, float]:
        """Return the use and memory of GPUs by name.

        The names are `gpu_percent.WORKER.0` and `gpu_memory_gb.WORKER.0` for GPUs, and `gpu_memory_gb.rank0`
        for processes. GPUs are numbered in the order of `uuids`, those that the run holds. A GPU that does
        not answer is left out.
        """
        metrics = dict[str, float]()
        if self._nvml is None:
            return metrics
        for number, uuid in enumerate(uuids):
            with contextlib.suppress(Exception):
                handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
                gpu_name = f"{worker_id}.{number}"
                metrics[f"gpu_percent.{gpu_name}"] = float(
                    self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu
                )
                used = self._nvml.nvmlDeviceGetMemoryInfo(handle).used
                metrics[f"gpu_memory_gb.{gpu_name}"] = used / GIGA
                self._add_processes(metrics, handle, names)
        return metrics

    def _add_processes(self, metrics: dict[str, float], handle: Any, names: Mapping[int, str]) -> None:
        for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle):
            # Drivers in virtual machines do not report the amount.
            if process.pid in names and process.usedGpuMemory is not None:
                name = f"gpu_memory_gb.{names[process.pid]}"
                metrics[name] = metrics.get(name, 0.0) + process.usedGpuMemory / GIGA
