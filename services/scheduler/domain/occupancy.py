"""Which allocations hold which slots, and which allocations belong to a job.

Depends only on the scheduler's records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from services.kit.overlay import Layer
from services.scheduler.domain.records import Allocation


class Occupancy:
    """Slots held on each worker, and the allocations of each job."""

    def __init__(self, allocations: Iterable[Allocation] = ()) -> None:
        self._held: dict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
        """Worker -> allocation -> slots."""
        self._of_job: dict[int, dict[str, None]] = defaultdict(dict)
        self.unconfirmed_lost: dict[str, None] = {}
        """Allocations with a part that is lost but may still run."""
        for allocation in sorted(allocations, key=lambda a: a.requested):
            self.put(allocation)

    def put(self, allocation: Allocation) -> None:
        """Add or update an allocation."""
        self._of_job[allocation.experiment_id][allocation.id] = None
        for member in allocation.members:
            # Also of a part that is over: the slots of an allocation become free together, once all of it has
            # ended.
            self._held[member.worker_id][allocation.id] = member.slots
        if any(member.lost and not member.over for member in allocation.members):
            self.unconfirmed_lost[allocation.id] = None
        else:
            self.unconfirmed_lost.pop(allocation.id, None)

    def drop(self, allocation: Allocation) -> None:
        """Remove an allocation that is over."""
        self.unconfirmed_lost.pop(allocation.id, None)
        for member in allocation.members:
            self._held[member.worker_id].pop(allocation.id, None)
        mine = self._of_job[allocation.experiment_id]
        mine.pop(allocation.id, None)
        if not mine:
            del self._of_job[allocation.experiment_id]

    def drop_worker(self, id: str) -> None:
        """Forget a worker on which nothing is held."""
        self._held.pop(id, None)

    def of_job(self, experiment_id: int) -> list[str]:
        """The allocations of a job, oldest first."""
        return list(self._of_job.get(experiment_id, ()))

    def held_on(self, worker_id: str) -> list[str]:
        """The allocations that hold slots of a worker."""
        return list(self._held.get(worker_id, ()))

    def taken_on(self, worker_id: str) -> set[int]:
        """The slots of a worker that are held."""
        return {slot for slots in self._held.get(worker_id, {}).values() for slot in slots}

    def layer(self) -> Occupancy:
        """Return a view that can be changed without changing these places."""
        view = Occupancy()
        view._held = Layer(self._held)  # type: ignore[assignment]
        view._of_job = Layer(self._of_job)  # type: ignore[assignment]
        view.unconfirmed_lost = Layer(self.unconfirmed_lost)  # type: ignore[assignment]
        return view
