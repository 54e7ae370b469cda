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
        self.provisioned_due = SortedKeys((one.due_at, one.id) for one in asked_for if one.due_at)
        waiting = (one for one in self.supplies.values() if one.retry_at)
        self.retries_due = SortedKeys((one.retry_at, one.pool) for one in waiting)

    def put_provisioned(self, worker: Provisioned) -> Iterable[Key]:
        """Store a requested worker."""
        known = self.provisioned.get(worker.id)
        self.provisioned_by_standing.swap(_standing_key(known) if known else None, _standing_key(worker))
        due_before = (known.due_at, known.id) if known and known.due_at else None
        self.provisioned_due.swap(due_before, (worker.due_at, worker.id) if worker.due_at else None)
        self.provisioned[worker.id] = worker
        yield "provisioned", worker.id
        yield "pools", worker.pool

    def drop_provisioned(self, id: str) -> Iterable[Key]:
        """Forget a requested worker."""
        known = self.provisioned.pop(id, None)
        if known is not None:
            self.provisioned_by_standing.discard(*_standing_key(known))
            self.provisioned_due.discard(known.due_at, id)
            yield "provisioned", id
            yield "pools", known.pool

    def put_supply(self, supply: Supply) -> Iterable[Key]:
        """Store what is known about a pool's provisioning."""
        known = self.supplies.get(supply.pool)
        before = (known.retry_at, known.pool) if known and known.retry_at else None
        self.retries_due.swap(before, (supply.retry_at, supply.pool) if supply.retry_at else None)
        self.supplies[supply.pool] = supply
        yield "supplies", supply.pool
        yield "pools", supply.pool

    def count_provisioned(self, pool: str, *standings: Standing) -> int:
        """Count a pool's requested workers that have one of these standings. Without standings, count all."""
        if not standings:
            return self.provisioned_by_standing.count(pool)
        return sum(self.provisioned_by_standing.count(pool, standing) for standing in standings)


def _standing_key(one: Provisioned) -> tuple[str, str, bool, int, str]:
    # Absent before present, and the newest first: whoever gives workers back takes from the front
    # (`growth._workers_in`).
    return one.pool, one.standing, one.here, -one.number, one.id
