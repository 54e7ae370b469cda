"""Which workers a pool asks for and which it gives back, as events with their reasons.

Asked for is what the queue could use and nobody offers; given back is what has long been idle and the queue
cannot use. Both follow from the state alone, so a pool whose provisioner was away goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from det_contracts.events import scheduler
from det_contracts.events.scheduler import Provider
from services.scheduler.domain import State
from services.scheduler.domain.supply import SPARE, Provisioned, Standing, Supply
from services.scheduler.policy.autoscale import Demand, demand_of
from services.scheduler.policy.records import Decision

AT_ONCE = 100
"""Workers that one pass asks for, or gives back."""


def grow(state: State, pool: str, decision: Decision) -> Sequence[Any]:
    """What a pool decides about its workers, beside `decision` about its queue; none for a pool at rest."""
    provider = state.pools[pool].settings.provider
    if provider is None and not state.provisioned_as(pool):
        return ()
    # Without a provider it asks for nothing more, and gives back what it has.
    view = _View(state, pool, provider or Provider(type="process", max_instances=0), decision)
    return [*view.over(), *view.failing(), *view.wanted(), *view.idle()]


class _View:
    """A pool's workers and what its queue could use."""

    def __init__(self, state: State, pool: str, provider: Provider, decision: Decision) -> None:
        self._state, self._pool, self._provider = state, pool, provider
        self._supply = state.supplies.get(pool) or Supply(pool=pool)
        placed = {share.agent_id for one in decision.allocate for share in one.shares}
        known = (one for id in placed if (one := state.provisioned.get(id)) is not None)
        self._taken = {one.id for one in known if one.standing in SPARE}
        """Those that get work in this very pass."""
        self._live = state.provisioned_as(pool, "taken", *SPARE)
        self._spare = state.provisioned_as(pool, *SPARE) - len(self._taken)
        self._room = provider.max_instances - state.provisioned_as(pool) + state.provisioned_as(pool, "over")
        self._demand = self._wish(decision)

    def _wish(self, decision: Decision) -> Demand:
        """What the queue could use, as far as anything can follow from it."""
        if self._room <= 0 and not self._state.provisioned_as(self._pool, "idle"):
            return Demand()
        settings = self._state.pools[self._pool].settings
        return demand_of(
            self._state.index.books[self._pool],
            placed={one.allocation_id for one in decision.allocate},
            slots_per_instance=self._provider.slots_per_instance,
            max_zero_slot=settings.max_aux_containers_per_agent,
            enough=self._spare + max(self._room, 0),
            most=self._provider.max_instances,
        )

    def _those(self, standing: Standing) -> Iterable[Provisioned]:
        """Some that stand so: first those that are not there yet, and of these the newest first."""
        ids = self._state.provisioned_in.ids(self._pool, standing)
        return [self._state.provisioned[id] for id in islice(ids, AT_ONCE)]

    def over(self) -> Iterable[Any]:
        """Those of which nothing is left."""
        for one in self._those("over"):
            yield scheduler.WorkerDismissed(
                worker_id=one.id,
                pool=self._pool,
                reason=_why_over(one),
                failed=not one.was_here and not one.released,
            )

    def failing(self) -> Iterable[Any]:
        """Those that must be given back whether the queue could use them or not."""
        for one in self._those("failing"):
            yield scheduler.WorkerReleased(
                worker_id=one.id,
                pool=self._pool,
                reason=_why_failing(one),
                failed=one.late and not one.was_here,
            )

    def wanted(self) -> Iterable[Any]:
        """Those that the queue could use beside what is there."""
        fails = any(event.failed for event in (*self.over(), *self.failing()))
        if fails or self._supply.retry_at:
            return
        least = self._provider.min_instances - self._live
        more = self._demand.instances - self._spare
        reason = self._demand.reason
        if least > more:
            more = least
            reason = f"the pool has at least {self._provider.min_instances} (min_instances)"
        number = self._supply.newest
        for _ in range(min(more, self._room, AT_ONCE)):
            number, id = self._next_id(number)
            yield scheduler.WorkerWanted(worker_id=id, pool=self._pool, number=number, reason=reason)

    def _next_id(self, number: int) -> tuple[int, str]:
        """An id that no worker has or had, also none that somebody starts by hand."""
        while True:
            number += 1
            id = f"{self._pool}-{number}"
            if id not in self._state.workers:
                return number, id

    def idle(self) -> Iterable[Any]:
        """Those that nobody has needed for long."""
        surplus = self._spare - self._demand.instances
        count = max(0, min(surplus, self._live - self._provider.min_instances))
        idle = [one for one in self._those("idle") if one.id not in self._taken]
        for one in idle[:count]:
            yield scheduler.WorkerReleased(worker_id=one.id, pool=self._pool, reason=self._why_idle(one))

    def _why_idle(self, one: Provisioned) -> str:
        did = "it had no work" if one.here else "it is not there yet, and nothing waits for it any more,"
        return f"{did} for {self._provider.max_idle_s:g} s (max_idle_agent_period)"


def _why_over(one: Provisioned) -> str:
    if one.phase == "over":
        return one.detail or "its engine says that it has ended"
    return "its engine does not list it any more"


def _why_failing(one: Provisioned) -> str:
    """Why a worker must be given back."""
    if one.ending:
        return "its engine takes its host away soon"
    seen = "was out of touch for too long" if one.was_here else "did not register in time"
    return f"it {seen} (max_agent_starting_period); its engine says {one.phase}: {one.detail}"
