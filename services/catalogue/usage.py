"""Slot usage: timelines of single slots, totals by day, and workers that are away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.catalogue.api_values import instant, maybe_instant
from services.catalogue.domain import Allocation, State
from services.catalogue.runs import Use
from services.people import users

HOUR_S = 3600.0
NOBODY = "(none)"
HIDDEN = "in another workspace"
BEFORE_GOING_S = 1.0
"""A run that ended at most this many seconds before its worker left counts as its last."""
Seen = Callable[[Allocation], bool]
"""Whether a run is visible."""


def _everything(_: Allocation) -> bool:
    return True


def strips(state: State, runs: Sequence[Allocation], seen: Seen = _everything) -> list[dict[str, Any]]:
    """What ran on each slot, for runs in order of time. Slots without runs are left out."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for one in runs:
        shown = _ran(state, one, seen)
        for part in one.members:
            for slot in part.slots:
                found[part.worker_id, slot].append(shown)
    return [
        {"agentId": agent, "slotId": str(slot), "runs": runs} for (agent, slot), runs in sorted(found.items())
    ]


def _ran(state: State, one: Allocation, seen: Seen) -> dict[str, Any]:
    """A run as shown in a slot's timeline. If the run is hidden, only the times are shown."""
    told = {
        "name": _name(state, one),
        "experimentId": one.experiment_id if one.trial_id is not None else None,
        "trialId": one.trial_id,
        "since": instant(one.started_at or one.requested_at),
        "until": maybe_instant(one.ended_at),
        "outcome": one.outcome or "",
        "reason": one.reason,
    }
    hidden = {"name": HIDDEN, "experimentId": None, "trialId": None, "outcome": "", "reason": ""}
    return told if seen(one) else told | hidden


def _name(state: State, one: Allocation) -> str:
    experiment = state.experiments.get(one.experiment_id)
    task = state.tasks.get(one.task_id)
    if one.trial_id is not None and experiment:
        return f"experiment {experiment.id} {experiment.name}, trial {one.trial_id}"
    return task.name if task else one.task_id


def by_day(state: State, used: Mapping[Use, float]) -> list[dict[str, Any]]:
    """Slot hours of each day (UTC) and user, with the labels of what ran; the newest day first."""
    found: dict[tuple[str, str, str], float] = defaultdict(float)
    for one, seconds in used.items():
        user, labels = _owner(state, one)
        day = one.date.isoformat()
        for label in labels:
            found[day, user, label] += seconds / HOUR_S / len(labels)
    return [
        {"day": day, "user": user, "label": label, "slotHours": hours}
        for (day, user, label), hours in sorted(found.items(), reverse=True)
        if hours > 0
    ]


def _owner(state: State, one: Use) -> tuple[str, tuple[str, ...]]:
    experiment = state.experiments.get(one.experiment_id)
    task = state.tasks.get(one.task_id)
    name = task.user if task else experiment.user if experiment else NOBODY
    known = users.named(state, name)
    labels = experiment.labels if experiment and experiment.labels else (NOBODY,)
    return known.username if known else name, labels


def away(
    state: State, runs: Sequence[Allocation], since: float, seen: Seen = _everything
) -> list[dict[str, Any]]:
    """Workers that left or were lost since `since`, with the fate of their last runs, newest first.

    `runs` must contain those that held slots at any time from `BEFORE_GOING_S` before `since`.
    """
    gone = sorted(
        (one for one in state.away.values() if one.gone_at is not None and one.gone_at > since),
        key=lambda one: -(one.gone_at or 0.0),
    )
    return [
        {
            "id": one.id,
            "resourcePools": [one.pool],
            "slots": len(one.slots),
            "goneTime": instant(one.gone_at or 0.0),
            "reason": one.gone_why,
            "runs": [
                _ran(state, run, seen)
                for run in runs
                if (run.ended_at is None or run.ended_at > (one.gone_at or 0.0) - BEFORE_GOING_S)
                and any(part.worker_id == one.id for part in run.members)
                and (run.started_at or 0.0) <= (one.gone_at or 0.0)
            ],
        }
        for one in gone
    ]
