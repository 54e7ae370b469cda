"""How many jobs of each pool hold slots, and how many only want some: counted as requests come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

from services.scheduler.domain.gate import Gate
from services.scheduler.policy.book import Book

Standing = tuple[str, Literal["queued", "scheduled"]]
"""A job's pool, and whether it holds slots there or only wants some."""


class JobCount(NamedTuple):
    """The jobs of one pool that have or want something in it."""

    queued: int
    """How many only wait."""
    scheduled: int
    """How many hold slots, whatever else of them waits."""


class JobCounts:
    """The counts of all pools. What a job still holds in an earlier pool of its own does not count."""

    def __init__(self, books: Mapping[str, Book], gate: Gate) -> None:
        self._books = books
        self._gate = gate
        self._pools: dict[str, str] = {}
        """Pool of each job, by the name of its group."""
        self._standings: dict[str, Standing] = {}
        self._counts: Counter[Standing] = Counter()

    def of(self, pool: str) -> JobCount:
        """The counts of a pool."""
        return JobCount(self._counts[pool, "queued"], self._counts[pool, "scheduled"])

    def put_job(self, job: str, pool: str) -> None:
        """Add a job, or move it to another pool."""
        self._pools[job] = pool
        self.update(job)

    def drop_job(self, job: str) -> None:
        """Remove a job that is over."""
        self._pools.pop(job, None)
        self.update(job)

    def update(self, job: str) -> None:
        """Count a job anew: one of its requests has come, changed or gone. Does nothing if it is no job."""
        before, after = self._standings.pop(job, None), self._standing(job)
        if before is not None:
            self._counts[before] -= 1
        if after is not None:
            self._standings[job] = after
            self._counts[after] += 1

    def _standing(self, job: str) -> Standing | None:
        pool = self._pools.get(job)
        if pool is None:
            return None
        queue = self._books[pool].queues.get(job)
        if queue is not None and queue.has_running:
            return pool, "scheduled"
        # Requests that quotas keep out are in no book, but their jobs wait all the same.
        waits = (queue is not None and queue.has_waiting) or self._gate.has_waiting(pool, job)
        return (pool, "queued") if waits else None
