"""The part of the log that one question needs, and what is still missing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from det_contracts import codec
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from det_contracts.events.scheduler import AllocationAssigned

Kind = Literal["experiment", "trial", "allocation", "deletions", "worker", "pool"]


class Thing(msgspec.Struct, frozen=True):
    """Something whose events are read together."""

    kind: Kind
    id: int | str
    """Of an allocation its whole id; for `deletions` the experiment's."""


class Cause(msgspec.Struct, frozen=True):
    """An event known by its id alone, which lies before the one that it led to."""

    id: str
    before: int


Missing = Thing | Cause


class About(msgspec.Struct, frozen=True):
    """Whom an event speaks of."""

    kind: str
    id: str


class History:
    """Events by place and id. Looking for what was never read notes it in `missing`."""

    def __init__(self) -> None:
        self.trial_of: dict[str, int | None] = {}
        """By allocation id; None for allocations that are not a trial's."""
        self.hosts_of: dict[str, tuple[str, ...]] = {}
        """Workers of an allocation that got slots."""
        self.missing: set[Missing] = set()
        self._read: dict[Missing, None] = {}
        self._events: dict[int, Recorded] = {}
        self._by_id: dict[str, Recorded] = {}
        self._ordered: list[Recorded] = []

    def add(self, what: Missing, events: Iterable[Recorded]) -> None:
        """What was read of a thing, or around a cause; nothing found counts as read."""
        self._read[what] = None
        for recorded in events:
            if type(recorded.event) not in (Decision, Unknown):
                self._events[recorded.position] = self._by_id[recorded.id] = recorded
                self._learn_owner(recorded.event)
        self._ordered = [self._events[position] for position in sorted(self._events)]

    def _learn_owner(self, event: Any) -> None:
        id, trial = getattr(event, "allocation_id", None), getattr(event, "trial_id", None)
        if id is not None and (trial is not None or hasattr(event, "kind")):
            self.trial_of[id] = trial
        if isinstance(event, AllocationAssigned):
            self.hosts_of[event.allocation_id] = tuple(part.worker_id for part in event.parts)

    @property
    def events(self) -> Sequence[Recorded]:
        """Everything read, in order."""
        return self._ordered

    def newest(
        self,
        things: Sequence[Thing],
        types: tuple[type, ...],
        *,
        before: float = float("inf"),
        where: Callable[[Any], bool] = lambda _: True,
    ) -> Recorded | None:
        """The newest event of some types that tells of the things and lies before a position."""
        self.missing |= {thing for thing in things if thing not in self._read}
        for recorded in reversed(self._ordered):
            event = recorded.event
            if recorded.position < before and type(event) in types and where(event):
                return recorded
        return None

    def cause(self, recorded: Recorded) -> Recorded | None:
        """The event that led to another; None for a person's command, and while it was not read."""
        if not recorded.cause or recorded.actor.startswith("user:"):
            return None
        found = self._by_id.get(recorded.cause)
        if found is None:
            cause = Cause(recorded.cause, recorded.position)
            self.missing |= {cause} - self._read.keys()
        return found


def about(event: Any) -> About:
    """Whom an event speaks of: of an allocation, though a worker states it; else whose subject it is on."""
    if hasattr(event, "allocation_id") and hasattr(event, "worker_id"):
        return About("allocation", event.allocation_id)
    kind = codec.kind_of(event)
    noun = kind.name.rpartition(".")[0].rpartition(".")[2] or kind.name
    return About(noun, str(getattr(event, kind.key)))
