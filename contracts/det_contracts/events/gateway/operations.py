"""What administrators have the services do: retry, skip, rebuild, log."""

from __future__ import annotations

from typing import Literal

import msgspec

from det_contracts.codec import event


@event("gateway.decisions.retried", key="owner")
class DecisionsRetried(msgspec.Struct, frozen=True, kw_only=True):
    """An operator wants an owner to retry the records that it could not decide about.

    All replicas of that owner listen. It changes no record: the records are decided now, or parked again with
    the current reason.
    """

    owner: str
    """For example `searcher`."""
    reason: str


class SkippedEvent(msgspec.Struct, frozen=True):
    """The place of an event that an owner does not fold."""

    stream: str
    position: int


@event("gateway.event.skipped", key="owner")
class EventSkipped(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator has an owner skip an event that it cannot fold, which stopped it.

    All replicas of that owner listen, and each looks for the newest one before it folds anything. The event
    has no effect on that owner's state, even when that is rebuilt from the log; other owners fold it.
    """

    owner: str
    """For example `searcher`."""
    stream: str
    position: int
    subject: str
    """Subject of the skipped event, which says what it is about."""
    error: str
    """Why it could not be folded."""
    skipped: tuple[SkippedEvent, ...]
    """Everything that this owner skips, this event included."""
    reason: str
    """Who asked for it, and why."""


@event("gateway.rebuild.asked", key="owner")
class RebuildAsked(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator has an owner's database rebuilt from the log.

    All replicas of that owner listen. The one that saves deletes what the database holds, and all start
    again. It changes no record. A database that was begun after this event was stated is not rebuilt for it.
    """

    owner: str
    """For example `searcher`."""
    reason: str


@event("gateway.rebuild.from_copy_asked", key="owner")
class RebuildFromCopyAsked(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator has the database of a metrics process filled again from its newest copy.

    All replicas of that owner listen. The one that saves starts again, and fills the database before it reads
    the log; it refuses where something would be lost. Earlier releases, which would empty the database, know
    no such event. It changes no record.
    """

    owner: str
    """For example `metrics`."""
    reason: str


@event("gateway.logging.set", key="part")
class LoggingSet(msgspec.Struct, frozen=True, kw_only=True):
    """An administrator has the services print their own logs otherwise from now on.

    Every process that folds the log listens, and looks for the newest one of each part when it starts. It
    changes no record.
    """

    part: Literal["level", "color"]
    value: str
    """A level as DEBUG, INFO, WARNING or ERROR; `on` or `off` for colors."""
    reason: str
