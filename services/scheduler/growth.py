"""Which workers a pool requests and which it gives back, as events with reasons.

A pool requests workers that the queue could use and that are not there yet, and gives back workers that have
long been idle and that the queue cannot use. Both depend on the state alone, so a pool continues where it was
after its provisioner has been away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from det_contracts.events import scheduler
from det_contracts.events.scheduler import Provider
from services.scheduler.domain import State
from services.scheduler.domain.supply import SPARE, Provisioned, Standing, Supply
from services.scheduler.policy.autoscale import Demand, demand_of
from services.scheduler.policy.records import Decision

LAST_SECOND = datetime.max.replace(tzinfo=UTC).timestamp() - 1
MAX_CHANGES_PER_PASS = 100
"""Maximum number of workers that one pass requests or gives back."""


def scale_pool(state: State, pool: str, decision: Decision) -> Sequence[Any]:
    """The events that change a pool's workers, given the `decision` about its queue.

    Empty if nothing is to change.
    """
    provider = state.pools[pool].settings.provider
    if provider is None and not state.count_provisioned(pool):
        return ()
    # A pool without a provider requests no more workers and gives back the ones it has.
    view = _PoolView(state, pool, provider or Provider(type="process", max_instances=0), decision)
    return [*view.dismiss_ended(), *view.release_failing(), *view.request_missing(), *view.release_idle()]


class _PoolView:
    """A pool's workers and what its queue could use."""

    def __init__(self, state: State, pool: str, provider: Provider, decision: Decision) -> None:
        self._state, self._pool, self._provider = state, pool, provider
        self._supply = state.supplies.get(pool) or Supply(pool=pool)
        placed = {share.agent_id for placement in decision.allocate for share in placement.shares}
        placed_workers = (worker for id in placed if (worker := state.provisioned.get(id)) is not None)
        self._assigned_now = {worker.id for worker in placed_workers if worker.standing in SPARE}
        """Spare workers that get work in this very pass."""
        self._live = state.count_provisioned(pool, "taken", *SPARE)
        self._spare = state.count_provisioned(pool, *SPARE) - len(self._assigned_now)
        # Workers of which nothing is left are still recorded, but take no place any more.
        self._addable = (
            provider.max_instances - state.count_provisioned(pool) + state.count_provisioned(pool, "over")
        )
        self._demand = self._compute_demand(decision)

    def _compute_demand(self, decision: Decision) -> Demand:
        """What the queue could use, or nothing if the pool could neither grow nor shrink anyway."""
        if self._addable <= 0 and not self._state.count_provisioned(self._pool, "idle"):
            return Demand()
        settings = self._state.pools[self._pool].settings
        return demand_of(
            self._state.index.books[self._pool],
            placed={placement.allocation_id for placement in decision.allocate},
            slots_per_instance=self._provider.slots_per_instance,
            max_zero_slot=settings.max_aux_containers_per_agent,
            stop_at=self._spare + max(self._addable, 0),
            max_instances=self._provider.max_instances,
        )

    def _workers_in(self, standing: Standing) -> Iterable[Provisioned]:
        """Some workers with this standing: those not yet registered come first, newest first."""
        ids = self._state.provisioned_by_standing.ids(self._pool, standing)
        return [self._state.provisioned[id] for id in islice(ids, MAX_CHANGES_PER_PASS)]

    def dismiss_ended(self) -> Iterable[Any]:
        """Dismiss workers of which nothing is left."""
        for worker in self._workers_in("over"):
            yield scheduler.WorkerDismissed(
                worker_id=worker.id,
                pool=self._pool,
                reason=_end_reason(worker),
                failed=not worker.was_here and not worker.released,
            )

    def release_failing(self) -> Iterable[Any]:
        """Give back workers that must go whether or not the queue could use them."""
        for worker in self._workers_in("failing"):
            yield scheduler.WorkerReleased(
                worker_id=worker.id,
                pool=self._pool,
                reason=_failure_reason(worker, self._provider.notice_s),
                failed=worker.too_short or (worker.late and not worker.was_here),
            )

    def request_missing(self) -> Iterable[Any]:
        """Request the workers that the queue could use beyond those that exist."""
        # These failures are in the same batch and begin the back-off, so nothing may be requested beside
        # them.
        fails = any(event.failed for event in (*self.dismiss_ended(), *self.release_failing()))
        if fails or self._supply.retry_at:
            return
        least = self._provider.min_instances - self._live
        more = self._demand.instances - self._spare
        reason = self._demand.reason
        if least > more:
            more = least
            reason = f"the pool has at least {self._provider.min_instances} (min_instances)"
        number = self._supply.newest
        for _ in range(min(more, self._addable, MAX_CHANGES_PER_PASS)):
            number, id = self._next_id(number)
            yield scheduler.WorkerWanted(worker_id=id, pool=self._pool, number=number, reason=reason)

    def _next_id(self, number: int) -> tuple[int, str]:
        """The next id that no worker has or had, including workers started by hand."""
        while True:
            number += 1
            id = f"{self._pool}-{number}"
            if id not in self._state.workers:
                return number, id

    def release_idle(self) -> Iterable[Any]:
        """Give back workers that have not been needed for long."""
        surplus = self._spare - self._demand.instances
        count = max(0, min(surplus, self._live - self._provider.min_instances))
        idle = [worker for worker in self._workers_in("idle") if worker.id not in self._assigned_now]
        for worker in idle[:count]:
            yield scheduler.WorkerReleased(
                worker_id=worker.id, pool=self._pool, reason=self._idle_reason(worker)
            )

    def _idle_reason(self, worker: Provisioned) -> str:
        did = "it had no work" if worker.here else "it is not there yet, and nothing waits for it any more,"
        return f"{did} for {self._provider.max_idle_s:g} s (max_idle_agent_period)"


def _end_reason(worker: Provisioned) -> str:
    if worker.phase == "over":
        return worker.detail or "its engine says that it has ended"
    return "its engine does not list it any more"


def _failure_reason(worker: Provisioned, notice_s: float) -> str:
    """Why a worker must be given back."""
    if worker.ending:
        end = f"{worker.detail or worker.id} ends at {format_time(worker.ends_at)}"
        if worker.too_short:
            return (
                f"its engine gives it less time than notice_period, {notice_s:g} s, so that no task could "
                f"use it: {end}. Set a longer time limit or a shorter notice_period"
            )
        return f"its engine takes its host away soon: {end}"
    what_happened = "was out of touch for too long" if worker.was_here else "did not register in time"
    return f"it {what_happened} (max_agent_starting_period); its engine says {worker.phase}: {worker.detail}"


def format_time(at: float) -> str:
    """A time in words, in UTC. It may be any number, as engines name times, too."""
    return f"{datetime.fromtimestamp(min(max(at, 0.0), LAST_SECOND), UTC):%Y-%m-%d %H:%M:%S} UTC"
