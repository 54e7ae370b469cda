"""The slots that a host offers: its GPUs, or slots that represent shares of the CPU."""

from __future__ import annotations

import contextlib
import itertools
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from det_contracts.events.worker import Slot
from services.kit.files import write_atomic
from worker.nvidia import bindings

CPUINFO = Path("/proc/cpuinfo")


def detect_slots(artificial: int | None = None, visible: str | None = None) -> tuple[Slot, ...]:
    """Return the slots of this host, with ids counting from 0.

    `artificial` requests that many CPU slots regardless of the hardware. Otherwise each GPU is a slot, and a
    host without GPUs has one CPU slot. `visible` limits the GPUs as CUDA_VISIBLE_DEVICES does.
    """
    if artificial is not None:
        if artificial < 0:
            raise ValueError(f"a host cannot offer {artificial} slots: give 0 or more")
        return cpu_slots(artificial)
    return gpus(visible) or cpu_slots(1)


class Inventory:
    """The slots of this host, with ids that stay stable even if a device fails."""

    def __init__(self, notes: Path, artificial: int | None = None) -> None:
        self._ids_file = notes
        self._artificial = artificial

    def scan(self) -> tuple[Slot, ...]:
        """The slots present now. A device that was here before keeps its id."""
        offered_slots = detect_slots(self._artificial)
        numbered = renumber(offered_slots, self._saved_ids())
        self._save_ids({slot.uuid: slot.id for slot in numbered})
        return numbered

    def _saved_ids(self) -> dict[str, int]:
        try:
            return msgspec.json.decode(self._ids_file.read_bytes(), type=dict[str, int])
        except (FileNotFoundError, msgspec.MsgspecError):
            return {}

    def _save_ids(self, present: dict[str, int]) -> None:
        ids = {uuid: id for uuid, id in self._saved_ids().items() if id not in present.values()} | present
        if ids == self._saved_ids():
            return
        with contextlib.suppress(OSError):
            write_atomic(self._ids_file, msgspec.json.encode(ids))


def renumber(present: tuple[Slot, ...], known_ids: dict[str, int]) -> tuple[Slot, ...]:
    """Give each known device its previous id, and each new one the lowest unused id."""
    ids = {slot.uuid: known_ids[slot.uuid] for slot in present if slot.uuid in known_ids}
    free = (id for id in itertools.count() if id not in ids.values())
    renumbered = [msgspec.structs.replace(slot, id=ids.get(slot.uuid, -1)) for slot in present]
    fresh = [slot if slot.id >= 0 else msgspec.structs.replace(slot, id=next(free)) for slot in renumbered]
    return tuple(sorted(fresh, key=lambda slot: slot.id))


def cpu_slots(count: int) -> tuple[Slot, ...]:
    """Slots without a device of their own."""
    brand = _cpu_brand()
    return tuple(Slot(number, "cpu", f"cpu-{number}", brand) for number in range(count))


def gpus(visible: str | None = None) -> tuple[Slot, ...]:
    """NVIDIA GPUs in the driver's order; empty without a driver."""
    visible_gpus = [gpu for gpu in _nvidia() if _is_visible(visible, gpu)]
    return tuple(Slot(number, "cuda", gpu.uuid, gpu.brand) for number, gpu in enumerate(visible_gpus))


def visible_devices(slots: Sequence[Slot], *, counted: bool = False) -> str:
    """Return the CUDA_VISIBLE_DEVICES of a task that holds these slots: indices, in the order of the slots.

    CUDA accepts UUIDs as well, but libraries that read the variable themselves expect numbers (DeepSpeed
    fails on anything else). The indices are the driver's, which are CUDA's if it counts by PCI bus. They are
    looked up for each run, because the driver counts anew when a device is lost. A GPU that cannot be found
    keeps its UUID. `counted` is for containers that have no other GPUs: there the count starts from 0.
    """
    uuids = [slot.uuid for slot in slots if slot.kind == "cuda"]
    if counted:
        return ",".join(map(str, range(len(uuids))))
    indices = {gpu.uuid: str(gpu.number) for gpu in _nvidia()} if uuids else {}
    all_indexed = all(uuid in indices for uuid in uuids)
    # Numbers and UUIDs cannot be mixed.
    return ",".join(indices[uuid] if all_indexed else uuid for uuid in uuids)


def _is_visible(visible: str | None, gpu: _Gpu) -> bool:
    if visible is None:
        return True
    names = [name.strip() for name in visible.split(",") if name.strip()]
    return str(gpu.number) in names or any(gpu.uuid.startswith(name) for name in names if not name.isdigit())


class _Gpu(NamedTuple):
    number: int
    uuid: str
    brand: str


def _nvidia() -> Iterator[_Gpu]:
    """Each GPU that answers, in the driver's order."""
    pynvml = bindings()
    if pynvml is None:
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            # A GPU that fell off the bus must not hide the others.
            with contextlib.suppress(pynvml.NVMLError):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                uuid, brand = pynvml.nvmlDeviceGetUUID(handle), pynvml.nvmlDeviceGetName(handle)
                yield _Gpu(index, _text(uuid), _text(brand))
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    """Older bindings return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _cpu_brand() -> str:
    with contextlib.suppress(OSError):
        for line in CPUINFO.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "CPU"
