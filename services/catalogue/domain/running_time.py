"""How long an experiment ran, and how many slot seconds it held, from the sums in its record."""

from __future__ import annotations

from services.catalogue.domain.state import Experiment


def running_s(one: Experiment, now: float) -> float:
    """Seconds during which at least one of its allocations ran: time queued or paused does not count."""
    return one.past_running_s + _ran_since_counted(one, now)


def slot_s(one: Experiment, now: float) -> float:
    """Slot seconds: for each of its allocations, its slots times how long it ran."""
    return one.past_slot_s + one.running_slots * _ran_since_counted(one, now)


def _ran_since_counted(one: Experiment, now: float) -> float:
    return max(0.0, now - one.counted_at) if one.running else 0.0
