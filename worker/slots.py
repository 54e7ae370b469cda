"""What a host offers: its GPUs, or slots that stand for shares of the CPU."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator
from pathlib import Path

from det_contracts.events.worker import Slot

CPUINFO = Path("/proc/cpuinfo")


def offered(artificial: int | None = None, visible: str | None = None) -> tuple[Slot, ...]:
    """Slots of this host, ids counting from 0.

    `artificial` asks for that many CPU slots whatever there is. Otherwise each GPU is a slot, and a host
    without GPUs is one CPU slot. `visible` limits the GPUs as CUDA_VISIBLE_DEVICES does.
    """
    if artificial is not None:
        if artificial < 0:
            raise ValueError(f"a host cannot offer {artificial} slots: give 0 or more")
        return cpu_slots(artificial)
    return gpus(visible) or cpu_slots(1)


def cpu_slots(count: int) -> tuple[Slot, ...]:
    """Slots without a device of their own."""
    brand = _cpu_brand()
    return tuple(Slot(number, "cpu", f"cpu-{number}", brand) for number in range(count))


def gpus(visible: str | None = None) -> tuple[Slot, ...]:
    """NVIDIA GPUs in the driver's order; none without a driver."""
    found = [pair for pair in enumerate(_nvidia()) if _is_visible(visible, *pair)]
    return tuple(Slot(number, "cuda", uuid, brand) for number, (_, (uuid, brand)) in enumerate(found))


def _is_visible(visible: str | None, index: int, gpu: tuple[str, str]) -> bool:
    if visible is None:
        return True
    names = [name.strip() for name in visible.split(",") if name.strip()]
    return any(name == str(index) or (not name.isdigit() and gpu[0].startswith(name)) for name in names)


def _nvidia() -> Iterator[tuple[str, str]]:
    """(uuid, brand) of each GPU."""
    try:
        import pynvml
    except ImportError:
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            yield _text(pynvml.nvmlDeviceGetUUID(handle)), _text(pynvml.nvmlDeviceGetName(handle))
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    """Older bindings answer in bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _cpu_brand() -> str:
    with contextlib.suppress(OSError):
        for line in CPUINFO.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "CPU"
