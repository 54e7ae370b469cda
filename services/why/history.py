"""The part of the log read for one question, and what still has to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from det_contracts import codec
from det_contracts.envelope import Recorded, Unknown
from det_contracts.events import Decision
from det_contracts.events.scheduler import AllocationAssigned

Kind = Literal["experiment", "trial", "allocation", "deletions", "worker", "pool"]


class Entity(msgspec.Struct, frozen=True):
    """A thing whose events are read together."""

    kind: Kind
    id: int | str
    """An allocation's full id; for `deletions`, the experiment's id."""


class Cause(msgspec.Struct, frozen=True):
    """A causing event, of which only the id is known. It precedes the event at `before`."""

    id: str
    before: int


Missing = Entity | Cause


class About(msgspec.Struct, frozen=True):
    """The thing that an event is about."""

    kind: str
    id: str


class History:
    """Events by position and id. A lookup of something not yet read adds it to `missing`."""

    def __init__(self, username_of: Callable[[int], str | None] = lambda _: None) -> None:
        """`username_of` returns the name of the user with an id, or None if there is no such user."""
        self.username_of = username_of
        self.trial_of: dict[str, int | None] = {}
        """Trials by allocation id; None for an allocation without a trial."""
        self.workers_of: dict[str, tuple[str, ...]] = {}
        """The workers of each allocation that got slots."""
        self.missing: set[Missing] = set()
        self._read: dict[Missing, None] = {}
        self._events: dict[int, Recorded] = {}
        self._by_id: dict[str, Recorded] = {}
        self._ordered: list[Recorded] = []

    def add(self, what: Missing, events: Iterable[Recorded]) -> None:
        """Add the events read for a thing or a cause, which then counts as read even if there are none."""
        self._read[what] = None
        for recorded in events:
            if type(recorded.event) not in (Decision, Unknown):
                self._events[recorded.position] = self._by_id[recorded.id] = recorded
                self._index_allocation(recorded.event)
        self._ordered = [self._events[position] for position in sorted(self._events)]

    def _index_allocation(self, event: Any) -> None:
        id, trial = getattr(event, "allocation_id", None), getattr(event, "trial_id", None)
        if id is not None and (trial is not None or hasattr(event, "kind")):
            self.trial_of[id] = trial
        if isinstance(event, AllocationAssigned):
            self.workers_of[event.allocation_id] = tuple(part.worker_id for part in event.parts)

    @property
    def events(self) -> Sequence[Recorded]:
        """All events read so far, in order."""
        return self._ordered

    def find_newest(
        self,
        entities: Sequence[Entity],
        types: tuple[type, ...],
        *,
        before: float = float("inf"),
        where: Callable[[Any], bool] = lambda _: True,
    ) -> Recorded | None:
        """The newest event of some types about these things, before a position."""
        self.missing |= {thing for thing in entities if thing not in self._read}
        for recorded in reversed(self._ordered):
            event = recorded.event
            if recorded.position < before and type(event) in types and where(event):
                return recorded
        return None

    def cause(self, recorded: Recorded) -> Recorded | None:
        """The cause of an event. None if a person caused it, or while the cause has not been read."""
        # The cause of a person's command is the command itself, which is no event.
        if not recorded.cause or recorded.actor.startswith("user:"):
            return None
        causing_event = self._by_id.get(recorded.cause)
        if causing_event is None:
            cause = Cause(recorded.cause, recorded.position)
            self.missing |= {cause} - self._read.keys()
        return causing_event


def about(event: Any) -> About:
    """The thing that an event is about.

    It is the allocation for workers' events about one, and otherwise the subject on which the event was
    published.
    """
    if hasattr(event, "allocation_id") and hasattr(event, "worker_id"):
        return About("allocation", event.allocation_id)
    kind = codec.kind_of(event)
    noun = kind.name.rpartition(".")[0].rpartition(".")[2] or kind.name
    return About(noun, str(getattr(event, kind.key)))
