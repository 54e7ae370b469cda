"""Queries that the scheduler answers from its folded state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

import msgspec

from det_contracts.events.scheduler import TaskKind
from det_contracts.ids import job_id
from det_contracts.queries import (
    ClusterState,
    Fits,
    Jobs,
    JobsUsed,
    Pools,
    PreviewChange,
    Provisioning,
    Waiting,
)
from services.kit.quotas import limits
from services.kit.rules import dump
from services.scheduler.domain import Allocation, Job, Pool, State, Worker
from services.scheduler.jobs import unknown_pool
from services.scheduler.listing import listed, place_of, requests_of
from services.scheduler.policy.explain import Explainer, explain_never_fits
from services.scheduler.policy.queue import job_info
from services.scheduler.preview import preview
from services.scheduler.provisioning import describe_supply, provisioning
from services.scheduler.quota_explainer import QuotaExplainer

CALLED: dict[TaskKind, str] = {
    "TRIAL": "a trial",
    "CHECKPOINT_GC": "a deletion of checkpoints",
    "COMMAND": "a command",
    "TENSORBOARD": "a TensorBoard",
    "NOTEBOOK": "a notebook",
    "SHELL": "a shell",
}
"""What a waiting user is told of a task, which may be somebody else's."""
MAX_EXPLAINED = 1000
"""Maximum number of waiting allocations that one answer explains.

Those behind them wait for the same reasons.
"""


def waiting(state: State, query: Waiting) -> dict[str, str]:
    """One sentence for each waiting allocation, of one experiment or of all."""
    if query.experiment_id is None:
        state.index.gate.update_books()
        ids = [
            id
            for pool, book in state.index.books.items()
            for id in (*book.waiting, *_not_admitted(state, pool))
        ]
    else:
        ids = [id for id in state.occupancy.of_job(query.experiment_id) if _is_waiting(state.allocations[id])]
    explainer = WaitExplainer(state)
    return {id: explainer.why(state.allocations[id]) for id in ids[:MAX_EXPLAINED]}


def _not_admitted(state: State, pool: str) -> Iterable[str]:
    """Allocations that quotas keep out."""
    return (request.allocation_id for request in state.index.gate.not_admitted(pool))


def _is_waiting(allocation: Allocation) -> bool:
    return allocation.state == "PENDING" and not allocation.stop


class WaitExplainer:
    """Explains why allocations wait, for one answer. Each pool is examined only once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._quota_explainer = QuotaExplainer(state, self._called)
        self._pools: dict[str, Explainer] = {}
        self._supply_descriptions: dict[str, str] = {}

    def why(self, allocation: Allocation) -> str:
        """One sentence about a waiting allocation."""
        quota = self._quota_explainer.why(allocation.id)
        if quota:
            return quota
        if allocation.pool not in self._pools:
            book = self._state.index.books[allocation.pool]
            self._pools[allocation.pool] = Explainer(book, called=self._called)
        reason = self._pools[allocation.pool].why(allocation.id)
        growing = self._supply_descriptions.setdefault(
            allocation.pool, describe_supply(self._state, allocation.pool)
        )
        return f"{reason} {growing}" if growing else reason

    def _called(self, allocation_id: str) -> str:
        """How users know an allocation: `trial 12 of experiment 3`, `a notebook`. They see no ids."""
        allocation = self._state.allocations[allocation_id]
        if allocation.trial_id is not None:
            return f"trial {allocation.trial_id} of experiment {allocation.experiment_id}"
        return CALLED[allocation.kind]


def jobs(state: State, query: Jobs) -> list[dict[str, Any]]:
    """The queue of one pool or of all. Jobs that currently request nothing are not in it."""
    if query.pool is not None and query.pool not in state.pools:
        raise unknown_pool(state, query.pool)
    if query.experiment_id is not None:
        line = place_of(state, query.experiment_id)
    else:
        pools = [query.pool] if query.pool is not None else sorted(state.pools)
        line = chain.from_iterable(listed(state, pool) for pool in pools)
    end = query.offset + query.limit if query.limit else None
    explainer = WaitExplainer(state)
    # What is not sent is only counted: to describe and to explain a job is most of the work.
    return [_job_row(state, job, ahead, explainer) for job, ahead in islice(line, query.offset, end)]


def _job_row(state: State, job: Job, ahead: int, explainer: WaitExplainer) -> dict[str, Any]:
    mine = state.occupancy.of_job(job.experiment_id)
    first = next((state.allocations[id] for id in mine if _is_waiting(state.allocations[id])), None)
    info = job_info(state.index.books[job.pool], list(requests_of(state, job)))
    row: dict[str, Any] = msgspec.to_builtins(job)
    return row | {
        "job_id": job_id(job.experiment_id),
        "position": str(job.queue_position),
        "state": info.state,
        "slots_requested": info.requested_slots,
        "slots_allocated": info.allocated_slots,
        "jobs_ahead": ahead,
        "waits_for": explainer.why(first) if first else "",
    }


def pools(state: State, query: Pools) -> list[dict[str, Any]]:
    """Settings and counts of every pool."""
    here: dict[str, list[Worker]] = {}
    for worker in state.workers.values():
        if worker.presence == "here":
            here.setdefault(worker.pool, []).append(worker)
    return [_pool_row(state, name, here.get(name, [])) for name in sorted(state.pools)]


def _pool_row(state: State, name: str, workers: list[Worker]) -> dict[str, Any]:
    pool = state.pools[name]
    held = [state.allocations[id] for w in workers for id in state.occupancy.held_on(w.id)]
    counts = state.index.job_counts.of(name)
    return {
        "name": name,
        "description": pool.description,
        "settings": msgspec.to_builtins(pool.settings),
        "workers": len(workers),
        "slots": sum(len(w.slots) for w in workers),
        "slots_used": sum(len(state.occupancy.taken_on(w.id)) for w in workers),
        "aux_used": sum(a.slots == 0 for a in held),
        "jobs": state.job_order.count(name),
        "queued": counts.queued,
        "scheduled": counts.scheduled,
        "growth": describe_supply(state, name),
    }


def fits(state: State, query: Fits) -> str:
    """Why such a request could never be placed and what would fit; "" if it could be."""
    if query.pool not in state.pools and query.pool != "default":
        raise unknown_pool(state, query.pool)
    book = state.index.books.get(query.pool)
    if book is None or not book.agents or _could_grow_to(state.pools[query.pool], query):
        return ""
    return explain_never_fits(book, slots=query.slots, single_agent=query.single_agent)


def _could_grow_to(pool: Pool, query: Fits) -> bool:
    """Whether workers that are not there yet could serve it."""
    provider = pool.settings.provider
    if provider is None or provider.max_instances < 1:
        return False
    each = provider.slots_per_instance
    whole = query.slots % each == 0 and not query.single_agent
    return query.slots <= each or (whole and query.slots <= each * provider.max_instances)


def jobs_used(state: State, query: JobsUsed) -> dict[str, dict[str, int]]:
    """Slots and jobs used by each quota holder."""
    slots, owed = limits.usage_of(state, state.index.gate.usage), limits.usage_of(state, state.owed)
    return {holder: {"slots": slots[holder], "jobs": owed[holder]} for holder in state.quotas}


def cluster_state(state: State, query: ClusterState) -> dict[str, Any]:
    """Everything that the scheduler has folded."""
    return dump(state)


ANSWERS: dict[Any, Callable[[State, Any], Any]] = {
    Waiting: waiting,
    Jobs: jobs,
    PreviewChange: preview,
    Pools: pools,
    Fits: fits,
    Provisioning: provisioning,
    JobsUsed: jobs_used,
    ClusterState: cluster_state,
}
