"""How many new instances a pool could use (scheduling spec, section 7, auto-scaling)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from services.scheduler.policy.records import Group, Request


def desired_instances(
    waiting: Iterable[Request], groups: Mapping[str, Group], *, slots_per_instance: int, max_zero_slot: int
) -> int:
    """Instances that would serve what waits: enough for the slots, and enough for the zero-slot tasks.

    A request counts when it fits on one instance or fills several; a group not beyond its `max_slots`.
    `max_zero_slot`: zero-slot tasks that an instance takes; 0 for none.
    """
    zero_slot, wanted = 0, Counter[str]()
    for request in waiting:
        if request.slots == 0:
            zero_slot += 1
        elif _served(request.slots, slots_per_instance):
            wanted[request.group] += request.slots
    slots = sum(_limited(groups.get(name), count) for name, count in wanted.items())
    return max(_instances(zero_slot, max_zero_slot), _instances(slots, slots_per_instance))


def _served(slots: int, per_instance: int) -> bool:
    return per_instance > 0 and (slots <= per_instance or slots % per_instance == 0)


def _limited(group: Group | None, slots: int) -> int:
    return slots if group is None or group.max_slots is None else min(slots, group.max_slots)


def _instances(needed: int, each: int) -> int:
    return -(-needed // each) if each > 0 else 0
