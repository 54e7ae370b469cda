"""Queries to the scheduler: the queue, the pools and their workers."""

from __future__ import annotations

import msgspec

from det_contracts.commands import ChangeJob


class Waiting(msgspec.Struct, frozen=True, tag="waiting"):
    """To the scheduler: `{allocation id: a sentence that says why it waits}`."""

    experiment_id: int | None = None


class Jobs(msgspec.Struct, frozen=True, tag="jobs"):
    """To the scheduler: the queue of one pool, or of all, in order.

    Rows `{job_id, experiment_id, pool, state, priority, weight, max_slots, position, submitted_at,
    slots_requested, slots_allocated, jobs_ahead, waits_for}`; `waits_for` is a sentence or empty.
    """

    pool: str | None = None
    experiment_id: int | None = None
    """Only the job of this experiment. Schedulers of earlier releases ignore this and send all."""
    offset: int = 0
    limit: int = 0
    """At most so many rows from `offset` on; 0: all. Schedulers of earlier releases send all."""


class PreviewChange(msgspec.Struct, frozen=True, tag="preview_change"):
    """To the scheduler: the effect of changing a job, without changing it.

    `{order, starts, leave}`: owners of jobs in the queue's new order; those that would newly get slots
    immediately; and those that would newly be preempted. Refused if the change itself would be.
    """

    change: ChangeJob


class Pools(msgspec.Struct, frozen=True, tag="pools"):
    """To the scheduler: the resource pools.

    Rows `{name, description, settings, workers, slots, slots_used, aux_used, jobs, queued, scheduled,
    growth}`. `queued` and `scheduled` count the jobs of the queue that have no slots and that have some.
    `growth` describes the state of a pool with a provider in a sentence, if there is anything to report.
    """


class Provisioning(msgspec.Struct, frozen=True, tag="provisioning"):
    """To the scheduler: a row `{pool, newest, problem, workers}` for each pool that has a provider.

    `newest` is the number of the worker requested last. `workers` lists the requested workers that are not
    dismissed: `{id, number, phase, detail, ends_at, released}`; `released` says why a worker is given back.
    """

    pool: str | None = None
    """Limits the answer to this pool."""


class Fits(msgspec.Struct, frozen=True, kw_only=True, tag="fits"):
    """To the scheduler: empty text if the pool could ever place such a request, else what would fit.

    A pool without workers refuses nothing. An unknown pool is a problem (not_found).
    """

    pool: str
    slots: int
    single_agent: bool = False


class ClusterState(msgspec.Struct, frozen=True, tag="cluster_state"):
    """To the scheduler: its complete folded state, as JSON: workers, allocations, queue."""


class JobsUsed(msgspec.Struct, frozen=True, tag="jobs_used"):
    """To the scheduler: by quota holder `{slots, jobs}`: the current usage."""
