"""How many more instances a pool could use (scheduling spec, section 7, auto-scaling)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from services.scheduler.policy.book import Book, group_headroom
from services.scheduler.policy.group_queue import Size, size_of


class Demand(NamedTuple):
    """Instances that would serve what waits, and why they are wanted."""

    instances: int = 0
    reason: str = ""


def demand_of(
    book: Book,
    *,
    slots_per_instance: int,
    max_zero_slot: int,
    placed: Collection[str] = (),
    stop_at: int | None = None,
    max_instances: int | None = None,
) -> Demand:
    """Return the instances that would serve what waits: enough for the slots and for the zero-slot tasks.

    A request counts if it fits on one instance or fills several, up to `max_instances` of them, and its
    group is within its `max_slots`. Requests already in `placed` do not count. `max_zero_slot` is how many
    zero-slot tasks an instance takes; 0 for none. Counting stops at `stop_at`.
    """
    zero_slot, slots = 0, 0
    demand_reason = _DemandReason()
    ready = Counter(
        (request.group, size_of(request)) for id in placed if (request := book.waiting.get(id)) is not None
    )
    # In queue order: that of `book.queues` differs between a scheduler that ran on and one that restarted.
    for name in (name for priority in sorted(book.levels) for _, name in book.levels[priority]):
        queue, wanted = book.queues[name], 0
        for size in queue.sizes():
            count = queue.waiting(size) - ready[name, size]
            if size.slots == 0:
                zero_slot += count
                demand_reason.add(name, count)
            elif _can_serve(size, slots_per_instance, max_instances):
                wanted += count * size.slots
                demand_reason.add(name, count)
        room = group_headroom(book, name)
        slots += wanted if room is None else max(0, min(wanted, room))
        instances = max(_instances_for(zero_slot, max_zero_slot), _instances_for(slots, slots_per_instance))
        if stop_at is not None and instances >= stop_at:
            return Demand(stop_at, demand_reason.reason(slots))
    instances = max(_instances_for(zero_slot, max_zero_slot), _instances_for(slots, slots_per_instance))
    return Demand(instances, demand_reason.reason(slots))


class _DemandReason:
    """Counts waiting requests, for the reason text."""

    def __init__(self) -> None:
        self._requests = 0
        self._group = ""

    def add(self, group: str, count: int) -> None:
        self._requests += count
        self._group = self._group or (group if count else "")

    def reason(self, slots: int) -> str:
        if not self._requests:
            return ""
        number = int(self._group) if self._group.isdecimal() else 0
        whose = f"experiment {number}" if number > 0 else "a user's own task"
        waiting = "1 request waits" if self._requests == 1 else f"at least {self._requests} requests wait"
        return f"{waiting} for {slots} slot{'' if slots == 1 else 's'} that no worker has; first of {whose}"


def _can_serve(size: Size, per_instance: int, most: int | None) -> bool:
    if not per_instance > 0:
        return False
    if size.slots <= per_instance:
        return True
    whole = size.slots % per_instance == 0 and not size.single_agent
    return whole and (most is None or size.slots <= most * per_instance)


def _instances_for(needed: int, each: int) -> int:
    return -(-needed // each) if each > 0 else 0
