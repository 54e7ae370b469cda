"""Keeps the worker's orders on disk, so that a worker that was killed resumes where it was.

Each allocation has a folder `runs/<allocation id>` with `order.json`, written before the orders that contain
it are recorded as acted on. So an assignment is either here or will be delivered again. Later facts about it
go into one small record, `notes.json`, whose space is reserved from the start. It can be written when the
disk is full, and in one write, so that a power loss leaves either the old or the new content.

A file that is damaged nevertheless is set aside. An order that cannot be read does not count: the worker does
not report it as running, so the scheduler places the run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from det_contracts.events.scheduler import AllocationAssigned
from det_contracts.orders import Briefing
from services.kit.files import overwrite, set_aside, write_atomic
from worker import process

NOTES_BYTES = 2048
POSITION_BYTES = 48
MAX_REASON_LENGTH = 150
"""Maximum length of a recorded reason, in characters: it fits the reserved space however JSON escapes it."""

log = structlog.get_logger()


class Notes(msgspec.Struct, frozen=True):
    """What has been reported about an assignment."""

    started_at: float
    reported: bool
    killed: str
    over: bool
    exceeded: str = ""


class Order(msgspec.Struct, frozen=True):
    """One assignment, and what has been reported about it."""

    assigned: AllocationAssigned
    started_at: float = 0.0
    """When the entrypoint was started; 0 before."""
    reported: bool = False
    """Whether its end is in the log."""
    killed: str = ""
    """Why it must end now. An order to kill is read only once, so it must be recorded."""
    exceeded: str = ""
    """Which limit it has exceeded, for which this worker ends it as failed. Recorded before it is killed."""
    position: int = 0
    """Position of the assignment in the log; the same on all nodes."""
    over: bool = False
    """Whether the cluster knows that it is over."""
    briefing: Briefing | None = None
    """What it is to run; None in orders written by an earlier version."""


class ActedOn(msgspec.Struct, frozen=True, array_like=True):
    """The newest orders that were acted on."""

    position: int
    """The position in CONTROL up to which they were complete."""
    sequence: int = 0
    """Their sequence number in the ORDERS stream."""


class Orders:
    """The folders of all allocations on this worker."""

    def __init__(self, home: Path) -> None:
        self._runs = home / "runs"
        self._position = home / "position.json"
        self._runs.mkdir(parents=True, exist_ok=True, mode=0o700)

    def folder(self, allocation_id: str) -> Path:
        """The folder with an allocation's files."""
        return self._runs / allocation_id

    def get(self, allocation_id: str) -> Order | None:
        """The order for an allocation, or None if it does not exist or is damaged."""
        folder = self.folder(allocation_id)
        path = folder / "order.json"
        try:
            order = msgspec.json.decode(path.read_bytes(), type=Order)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            aside = set_aside(path)
            log.error("order.damaged", allocation=allocation_id, error=str(error), kept_as=str(aside))
            # Kill what may still run of it, since nothing follows it any more.
            process.kill(folder)
            return None
        notes = _notes(folder)
        return order if notes is None else msgspec.structs.replace(order, **msgspec.structs.asdict(notes))

    def all(self) -> Iterator[Order]:
        """Every order, by allocation."""
        for path in sorted(self._runs.glob("*/order.json")):
            order = self.get(path.parent.name)
            if order is not None:
                yield order

    def save(self, order: Order) -> None:
        """Write an order, or what is new about it."""
        folder = self.folder(order.assigned.allocation_id)
        folder.mkdir(exist_ok=True, mode=0o700)
        killed, exceeded = order.killed[:MAX_REASON_LENGTH], order.exceeded[:MAX_REASON_LENGTH]
        notes = Notes(order.started_at, order.reported, killed, order.over, exceeded)
        # In place, in reserved space: a full disk must not keep an end from being recorded.
        overwrite(folder / "notes.json", msgspec.json.encode(notes), NOTES_BYTES)
        if not (folder / "order.json").exists():
            # Not flushed. Where it is lost or damaged by a power failure, the worker does not report it as
            # running, and nothing of it runs any more.
            write_atomic(folder / "order.json", msgspec.json.encode(order), durable=False)

    def acted_on(self) -> ActedOn | None:
        """The newest orders that were acted on; None for a new worker.

        If the record is damaged, this is the position of the oldest order, so that later orders are delivered
        again.
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

    def record(self, acted_on: ActedOn) -> None:
        """Record that these orders have been acted on."""
        overwrite(self._position, msgspec.json.encode(acted_on), POSITION_BYTES)


def _notes(folder: Path) -> Notes | None:
    path = folder / "notes.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Notes)
    except FileNotFoundError:
        # Written by an earlier version, which kept this in the order itself.
        return None
    except msgspec.MsgspecError as error:
        log.warning("notes.damaged", allocation=folder.name, error=str(error))
        return None
