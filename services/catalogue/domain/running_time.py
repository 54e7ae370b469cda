"""How long an experiment ran, and how many slot seconds it held, from the sums in its record."""

from __future__ import annotations

from services.catalogue.domain.state import Experiment


def running_s(experiment: Experiment, now: float) -> float:
    """Seconds during which at least one of its allocations ran: time queued or paused does not count."""
    return experiment.past_running_s + _ran_since_counted(experiment, now)


def slot_s(experiment: Experiment, now: float) -> float:
    """Slot seconds: for each of its allocations, its slots times how long it ran."""
    return experiment.past_slot_s + experiment.running_slots * _ran_since_counted(experiment, now)


def _ran_since_counted(experiment: Experiment, now: float) -> float:
    return max(0.0, now - experiment.counted_at) if experiment.running else 0.0
