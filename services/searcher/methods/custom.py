"""`custom`: a user's own code decides, from outside (searchers spec, section 8).

The method keeps a queue of events with ids 1, 2, 3 and so on. Whoever decides reads all of them and posts
operations for one: that event, and all before it, leave the queue.
"""

from __future__ import annotations

from typing import Any

import msgspec

from services.searcher.methods.protocol import (
    Event,
    Operation,
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    TrialProgress,
    ValidationCompleted,
)
from services.searcher.methods.rng import Rng
from services.searcher.methods.table import Table

TRIAL_SEED = 42
Told = tuple["CustomSearch", list[Operation]]


class InitialOperations(msgspec.Struct, frozen=True, tag="initial_operations"):
    """The search begins: what shall be done first?"""


class Queued(msgspec.Struct, frozen=True):
    """An event that nobody has answered yet."""

    id: int
    event: (
        InitialOperations
        | TrialCreated
        | ValidationCompleted
        | TrialClosed
        | TrialExitedEarly
        | TrialProgress
    )


class CustomSearch(msgspec.Struct, frozen=True, tag="custom"):
    """The queue, and the progress that the client told last."""

    queue: tuple[Queued, ...] = ()
    last_id: int = 0
    share: float = 0.0

    def tell(self, event: Event | InitialOperations) -> CustomSearch:
        """Queue an event. Of a trial's progress only the newest waits, or a slow client would drown in it."""
        kept = self.queue
        if isinstance(event, TrialProgress):
            kept = tuple(one for one in kept if not _is_progress_of(one, event.request_id))
        id = self.last_id + 1
        return msgspec.structs.replace(self, queue=(*kept, Queued(id, event)), last_id=id)

    def answered(self, id: int) -> CustomSearch:
        """Without the event of that id and all before it."""
        return msgspec.structs.replace(self, queue=tuple(one for one in self.queue if one.id > id))

    def initial(self, rng: Rng) -> Told:
        """Ask for the first operations."""
        return self.tell(InitialOperations()), []

    def trial_created(self, request_id: str) -> Told:
        """Told by `tell`, as are the next three."""
        return self, []

    def validation_completed(self, request_id: str, metric: Any, rng: Rng) -> Told:
        """See `trial_created`."""
        return self, []

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> Told:
        """See `trial_created`."""
        return self, []

    def trial_closed(self, request_id: str, rng: Rng) -> Told:
        """See `trial_created`."""
        return self, []

    def progress(self, units: Table[float], finished: int) -> float:
        """What the client said last."""
        return self.share


def _is_progress_of(one: Queued, request_id: str) -> bool:
    return isinstance(one.event, TrialProgress) and one.event.request_id == request_id
