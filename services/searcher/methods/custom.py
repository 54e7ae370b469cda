"""`custom`: a user's own code decides, from outside (searchers spec, section 8).

The method keeps a queue of events with ids 1, 2, 3 and so on. Whoever decides reads all of them and posts
operations for one: that event, and all before it, leave the queue.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
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
LONGEST_RUN = 256
"""Events of the queue that are copied together."""
MANY = 5000
"""Events that wait before a trial's newest progress takes the place of the one before."""
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


class Queue(msgspec.Struct, frozen=True, array_like=True):
    """Events by their ids, cut into runs, of which a change copies one."""

    runs: tuple[tuple[Queued, ...], ...] = ()

    def put(self, event: Queued) -> Queue:
        """With one event more; its id is the largest."""
        if not self.runs or len(self.runs[-1]) >= LONGEST_RUN:
            return Queue((*self.runs, (event,)))
        return Queue((*self.runs[:-1], (*self.runs[-1], event)))

    def without(self, id: int) -> Queue:
        """Without the event of that id, where it is there."""
        run = self._run_of(id)
        if run < 0:
            return self
        return self._with(run, tuple(one for one in self.runs[run] if one.id != id))

    def behind(self, id: int) -> Queue:
        """Only the events of larger ids."""
        run = self._run_of(id)
        if run < 0:
            return self
        return Queue(self.runs[run:])._with(0, tuple(one for one in self.runs[run] if one.id > id))

    def _with(self, run: int, events: tuple[Queued, ...]) -> Queue:
        return Queue((*self.runs[:run], *((events,) if events else ()), *self.runs[run + 1 :]))

    def _run_of(self, id: int) -> int:
        return bisect_right(self.runs, id, key=_first_id) - 1

    def __contains__(self, id: int) -> bool:
        run = self._run_of(id)
        return run >= 0 and any(one.id == id for one in self.runs[run])

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def __iter__(self) -> Iterator[Queued]:
        return chain.from_iterable(self.runs)


def _first_id(run: tuple[Queued, ...]) -> int:
    return run[0].id


class CustomSearch(msgspec.Struct, frozen=True, tag="custom"):
    """The queue, and the progress that the client told last."""

    queue: Queue = Queue()
    last_id: int = 0
    share: float = 0.0
    progressed: Table[int] = Table()
    """By trial, the id of the last event about its progress, which may have been answered."""

    def tell(self, event: Event | InitialOperations) -> CustomSearch:
        """Queue an event. Where many wait, of a trial's progress only the newest does."""
        id, queue, progressed = self.last_id + 1, self.queue, self.progressed
        if isinstance(event, TrialProgress):
            if len(queue) >= MANY and event.request_id in progressed:
                queue = queue.without(progressed[event.request_id])
            progressed = progressed.put(event.request_id, id)
        queue = queue.put(Queued(id, event))
        return msgspec.structs.replace(self, queue=queue, last_id=id, progressed=progressed)

    def answered(self, id: int) -> CustomSearch:
        """Without the event of that id and all before it."""
        return msgspec.structs.replace(self, queue=self.queue.behind(id))

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
