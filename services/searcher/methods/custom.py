"""`custom`: a user's own code decides, from outside the cluster (searchers spec, section 8).

The method keeps a queue of events with ids 1, 2, 3 and so on. The client reads all of them and posts
operations for one: this event and all earlier ones then leave the queue.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

import msgspec

from services.searcher.methods.protocol import (
    Declaration,
    Event,
    Operation,
    SearchSettings,
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    TrialProgress,
    ValidationCompleted,
)
from services.searcher.methods.rng import Rng
from services.searcher.methods.table import Table

TRIAL_SEED = 42
MAX_RUN_LENGTH = 256
"""Number of queued events that are copied together."""
MERGE_PROGRESS_FROM = 5000
"""Queue length from which a trial's new progress replaces its previous progress event."""
Step = tuple["CustomSearch", list[Operation]]


class InitialOperations(msgspec.Struct, frozen=True, tag="initial_operations"):
    """The search begins and needs its first operations."""


class Queued(msgspec.Struct, frozen=True):
    """An event that has not been answered yet."""

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
    """Events by id, split into runs; a change copies only one run."""

    runs: tuple[tuple[Queued, ...], ...] = ()

    def put(self, event: Queued) -> Queue:
        """The queue with one more event, which has the largest id."""
        if not self.runs or len(self.runs[-1]) >= MAX_RUN_LENGTH:
            return Queue((*self.runs, (event,)))
        return Queue((*self.runs[:-1], (*self.runs[-1], event)))

    def without(self, id: int) -> Queue:
        """The queue without the event with this id, if present."""
        run = self._run_index(id)
        if run < 0:
            return self
        return self._with_run(run, tuple(queued for queued in self.runs[run] if queued.id != id))

    def after(self, id: int) -> Queue:
        """Only the events with larger ids."""
        run = self._run_index(id)
        if run < 0:
            return self
        return Queue(self.runs[run:])._with_run(
            0, tuple(queued for queued in self.runs[run] if queued.id > id)
        )

    def _with_run(self, run: int, events: tuple[Queued, ...]) -> Queue:
        return Queue((*self.runs[:run], *((events,) if events else ()), *self.runs[run + 1 :]))

    def _run_index(self, id: int) -> int:
        return bisect_right(self.runs, id, key=_first_id) - 1

    def __contains__(self, id: int) -> bool:
        run = self._run_index(id)
        return run >= 0 and any(queued.id == id for queued in self.runs[run])

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def __iter__(self) -> Iterator[Queued]:
        return chain.from_iterable(self.runs)


def _first_id(run: tuple[Queued, ...]) -> int:
    return run[0].id


class CustomSearch(msgspec.Struct, frozen=True, tag="custom"):
    """The queue, and the progress that the client last reported."""

    compares_trials: ClassVar[bool] = False
    queue: Queue = Queue()
    last_id: int = 0
    share: float = 0.0
    progressed: Table[int] = Table()
    """Trial -> id of the last event about its progress. That event may have been answered."""

    def enqueue(self, event: Event | InitialOperations) -> CustomSearch:
        """Queue an event. If many wait, only the newest progress of each trial is kept."""
        id, queue, progressed = self.last_id + 1, self.queue, self.progressed
        if isinstance(event, TrialProgress):
            # A client that stays away must not fill the state with progress.
            if len(queue) >= MERGE_PROGRESS_FROM and event.request_id in progressed:
                queue = queue.without(progressed[event.request_id])
            progressed = progressed.put(event.request_id, id)
        queue = queue.put(Queued(id, event))
        return msgspec.structs.replace(self, queue=queue, last_id=id, progressed=progressed)

    def without_answered(self, id: int) -> CustomSearch:
        """Remove the event with this id and all earlier ones."""
        return msgspec.structs.replace(self, queue=self.queue.after(id))

    def initial(self, rng: Rng) -> Step:
        """Ask for the first operations."""
        return self.enqueue(InitialOperations()), []

    def trial_created(self, request_id: str) -> Step:
        """Nothing to do: `enqueue` queues this event, and the next three."""
        return self, []

    def validation_completed(self, request_id: str, metric: Any, rng: Rng) -> Step:
        """See `trial_created`."""
        return self, []

    def exited_early(self, request_id: str, reason: str, rng: Rng) -> Step:
        """See `trial_created`."""
        return self, []

    def trial_closed(self, request_id: str, rng: Rng) -> Step:
        """See `trial_created`."""
        return self, []

    def progress(self, units: Table[float], finished: int) -> float:
        """The progress that the client last reported."""
        return self.share


def _create(settings: SearchSettings) -> CustomSearch:
    return CustomSearch()


METHOD = Declaration(CustomSearch, _create)
