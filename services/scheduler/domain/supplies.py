"""The part of the state that concerns pools which provision their own workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from services.kit.authz.people import People
from services.kit.rules import derived
from services.kit.sorted_keys import SortedKeys
from services.scheduler.domain.supply import Provisioned, Standing, Supply

Key = tuple[str, Any]


@dataclass
class Supplies(People):
    """The workers that pools requested, and the progress of those requests.

    A change here also touches the pool.
    """

    provisioned: dict[str, Provisioned] = field(default_factory=dict)
    """By worker id."""
    supplies: dict[str, Supply] = field(default_factory=dict)
    """By pool."""
    provisioned_by_standing: SortedKeys = derived()  # noqa: RUF009
    """(pool, standing, whether it is here, negated number, worker) for every requested worker"""
    provisioned_due: SortedKeys = derived()  # noqa: RUF009
    """(due time, worker)"""
    retries_due: SortedKeys = derived()  # noqa: RUF009
    """(due time, pool)"""

    def build_supply_indexes(self) -> None:
        """Build the indexes from the records."""
        asked_for = self.provisioned.values()
        self.provisioned_by_standing = SortedKeys(map(_standing_key, asked_for))
        self.provisioned_due = SortedKeys((worker.due_at, worker.id) for worker in asked_for if worker.due_at)
        waiting = (supply for supply in self.supplies.values() if supply.retry_at)
        self.retries_due = SortedKeys((supply.retry_at, supply.pool) for supply in waiting)

    def put_provisioned(self, worker: Provisioned) -> Iterable[Key]:
        """Store a requested worker."""
        previous_worker = self.provisioned.get(worker.id)
        self.provisioned_by_standing.swap(
            _standing_key(previous_worker) if previous_worker else None, _standing_key(worker)
        )
        due_before = (
            (previous_worker.due_at, previous_worker.id)
            if previous_worker and previous_worker.due_at
            else None
        )
        self.provisioned_due.swap(due_before, (worker.due_at, worker.id) if worker.due_at else None)
        self.provisioned[worker.id] = worker
        yield "provisioned", worker.id
        yield "pools", worker.pool

    def drop_provisioned(self, id: str) -> Iterable[Key]:
        """Forget a requested worker."""
        worker = self.provisioned.pop(id, None)
        if worker is not None:
            self.provisioned_by_standing.discard(*_standing_key(worker))
            self.provisioned_due.discard(worker.due_at, id)
            yield "provisioned", id
            yield "pools", worker.pool

    def put_supply(self, supply: Supply) -> Iterable[Key]:
        """Store what is known about a pool's provisioning."""
        previous_supply = self.supplies.get(supply.pool)
        before = (
            (previous_supply.retry_at, previous_supply.pool)
            if previous_supply and previous_supply.retry_at
            else None
        )
        self.retries_due.swap(before, (supply.retry_at, supply.pool) if supply.retry_at else None)
        self.supplies[supply.pool] = supply
        yield "supplies", supply.pool
        yield "pools", supply.pool

    def count_provisioned(self, pool: str, *standings: Standing) -> int:
        """Count a pool's requested workers that have one of these standings. Without standings, count all."""
        if not standings:
            return self.provisioned_by_standing.count(pool)
        return sum(self.provisioned_by_standing.count(pool, standing) for standing in standings)


def _standing_key(worker: Provisioned) -> tuple[str, str, bool, int, str]:
    # Absent before present, and the newest first: whoever gives workers back takes from the front
    # (`growth._workers_in`).
    return worker.pool, worker.standing, worker.here, -worker.number, worker.id
