"""What the worker was told to run, kept on disk so that a killed worker goes on where it was.

Each allocation has a folder `runs/<allocation id>` with `order.json`, written before the worker's
reading position moves past the assignment. So an assignment is either still to be read or is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from det_contracts.events.scheduler import AllocationAssigned


class Order(msgspec.Struct, frozen=True):
    """One assignment, and what has been stated about it."""

    assigned: AllocationAssigned
    started_at: float = 0.0
    """When the entrypoint was started; 0 before."""
    reported: bool = False
    """The end is in the log."""
    killed: str = ""
    """Why it shall end at once. An order to kill is read once, so it must not be forgotten."""
    position: int = 0
    """Of the assignment in the log; the same on every node of it."""
    over: bool = False
    """The cluster knows that it is over."""


class Orders:
    """The folders of all allocations on this worker."""

    def __init__(self, home: Path) -> None:
        self._runs = home / "runs"
        self._position = home / "position.json"
        self._runs.mkdir(parents=True, exist_ok=True, mode=0o700)

    def folder(self, allocation_id: str) -> Path:
        """Where an allocation keeps its files."""
        return self._runs / allocation_id

    def get(self, allocation_id: str) -> Order | None:
        """The order for an allocation; None when there is none, or no more."""
        try:
            return msgspec.json.decode((self.folder(allocation_id) / "order.json").read_bytes(), type=Order)
        except FileNotFoundError:
            return None

    def all(self) -> Iterator[Order]:
        """Every order, by allocation."""
        for path in sorted(self._runs.glob("*/order.json")):
            order = self.get(path.parent.name)
            if order is not None:
                yield order

    def keep(self, order: Order) -> None:
        """Write an order down, or what is new about it."""
        folder = self.folder(order.assigned.allocation_id)
        folder.mkdir(exist_ok=True, mode=0o700)
        _write(folder / "order.json", msgspec.json.encode(order))

    def position(self) -> int | None:
        """Position of CONTROL up to which this worker has read; None for a new worker."""
        try:
            return msgspec.json.decode(self._position.read_bytes(), type=int)
        except FileNotFoundError:
            return None

    def read_up_to(self, position: int) -> None:
        """Everything up to `position` has been acted on."""
        _write(self._position, msgspec.json.encode(position))


def _write(path: Path, content: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.write_bytes(content)
        fresh.rename(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
