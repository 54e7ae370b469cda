"""What the worker was told to run, kept on disk so that a killed worker goes on where it was.

Each allocation has a folder `runs/<allocation id>` with `order.json`, written before the orders that told of
it are noted as acted on. So an assignment is either still to be told or is here. What is stated about it
later
is one small record, `notes.json`, whose room is taken at the beginning: it can be written where the disk is
full, and by one write, so that a power loss leaves it as it was before or after.

A file that is damaged all the same is set aside. An order that cannot be read is no order: the worker does
not state that it runs, so the scheduler places the run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from det_contracts.events.scheduler import AllocationAssigned
from det_contracts.orders import Briefing
from services.kit.files import overwrite, set_aside, write_whole
from worker import process

NOTES_BYTES = 1024
POSITION_BYTES = 48
LONGEST_REASON = 150
"""Characters that are noted, so that they have room in JSON whatever they are."""

log = structlog.get_logger()


class Notes(msgspec.Struct, frozen=True):
    """What has been stated about an assignment."""

    started_at: float
    reported: bool
    killed: str
    over: bool


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
    briefing: Briefing | None = None
    """What it is to run; none in orders that an earlier version kept."""


class ActedOn(msgspec.Struct, frozen=True, array_like=True):
    """The newest orders that were acted on."""

    position: int
    """Of CONTROL, up to which they were whole."""
    sequence: int = 0
    """In their stream."""


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
        """The order for an allocation; None when there is none, or no more, or it is damaged."""
        folder = self.folder(allocation_id)
        path = folder / "order.json"
        try:
            order = msgspec.json.decode(path.read_bytes(), type=Order)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            aside = set_aside(path)
            log.error("order.damaged", allocation=allocation_id, error=str(error), kept_as=str(aside))
            # Nobody would follow what may still run of it.
            process.kill(folder)
            return None
        noted = _notes(folder)
        return order if noted is None else msgspec.structs.replace(order, **msgspec.structs.asdict(noted))

    def all(self) -> Iterator[Order]:
        """Every order, by allocation."""
        for path in sorted(self._runs.glob("*/order.json")):
            order = self.get(path.parent.name)
            if order is not None:
                yield order

    def keep(self, order: Order) -> None:
        """Write an order down, or what is new about it; blocks until a new one is on the disk."""
        folder = self.folder(order.assigned.allocation_id)
        folder.mkdir(exist_ok=True, mode=0o700)
        noted = Notes(order.started_at, order.reported, order.killed[:LONGEST_REASON], order.over)
        overwrite(folder / "notes.json", msgspec.json.encode(noted), NOTES_BYTES)
        if not (folder / "order.json").exists():
            # One that is lost with the power is no harm: the worker does not state then that it runs.
            write_whole(folder / "order.json", msgspec.json.encode(order), lasting=False)

    def acted_on(self) -> ActedOn | None:
        """The newest orders that were acted on; None for a new worker.

        Where that is damaged its position is that of the oldest order: what came later is told again.
        """
        try:
            position = msgspec.json.decode(self._position.read_bytes(), type=ActedOn | int)
            return ActedOn(position) if isinstance(position, int) else position
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            aside = set_aside(self._position)
            oldest = min((order.position for order in self.all()), default=None)
            log.error("position.damaged", error=str(error), kept_as=str(aside), acted_on=oldest)
            return ActedOn(oldest) if oldest is not None else None

    def note(self, acted_on: ActedOn) -> None:
        """These orders have been acted on."""
        overwrite(self._position, msgspec.json.encode(acted_on), POSITION_BYTES)


def _notes(folder: Path) -> Notes | None:
    path = folder / "notes.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Notes)
    except FileNotFoundError:
        # Kept by an earlier version, in the order itself.
        return None
    except msgspec.MsgspecError as error:
        log.warning("notes.damaged", allocation=folder.name, error=str(error))
        return None
