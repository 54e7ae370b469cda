"""Slot usage: timelines of single slots, totals by day, and workers that are away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.catalogue.api_values import format_optional_time, format_time
from services.catalogue.domain import Allocation, State, TaskOwner
from services.catalogue.usage_days import UsageKey
from services.people import users

HOUR_S = 3600.0
NOBODY = "(none)"
HIDDEN = "in another workspace"
LAST_RUN_MARGIN_S = 1.0
"""A run that ended at most this many seconds before its worker left counts as its last."""
IsVisible = Callable[[Allocation], bool]
"""Whether a run is visible."""


def _always_visible(_: Allocation) -> bool:
    return True


def slot_timelines(
    state: State, runs: Sequence[Allocation], is_visible: IsVisible = _always_visible
) -> list[dict[str, Any]]:
    """What ran on each slot, for runs in order of time. Slots without runs are left out."""
    timelines: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        shown = _run_entry(state, run, is_visible)
        for part in run.members:
            for slot in part.slots:
                timelines[part.worker_id, slot].append(shown)
    return [
        {"agentId": agent, "slotId": str(slot), "runs": runs}
        for (agent, slot), runs in sorted(timelines.items())
    ]


def _run_entry(state: State, run: Allocation, is_visible: IsVisible) -> dict[str, Any]:
    """A run as shown in a slot's timeline. If the run is hidden, only the times are shown."""
    entry = {
        "name": _name(state, run),
        "experimentId": run.experiment_id if run.trial_id is not None else None,
        "trialId": run.trial_id,
        "since": format_time(run.started_at or run.requested_at),
        "until": format_optional_time(run.ended_at),
        "outcome": run.outcome or "",
        "reason": run.reason,
    }
    hidden = {"name": HIDDEN, "experimentId": None, "trialId": None, "outcome": "", "reason": ""}
    return entry if is_visible(run) else entry | hidden


def _name(state: State, run: Allocation) -> str:
    experiment = state.experiments.get(run.experiment_id)
    task = state.tasks.get(run.task_id)
    if run.trial_id is not None and experiment:
        return f"experiment {experiment.id} {experiment.name}, trial {run.trial_id}"
    if run.experiment_id in state.deleted_experiments:
        return f"deleted experiment {run.experiment_id}, trial {run.trial_id}"
    return task.name if task else run.task_id


def usage_by_day(
    state: State, used: Mapping[UsageKey, float], task_owners: Mapping[str, TaskOwner]
) -> list[dict[str, Any]]:
    """Slot hours of each day (UTC) and user, with the labels of what ran; the newest day first.

    `task_owners` are those of forgotten tasks.
    """
    slot_hours: dict[tuple[str, str, str], float] = defaultdict(float)
    for key, seconds in used.items():
        user, labels = _owner(state, key, task_owners)
        day = key.date.isoformat()
        for label in labels:
            slot_hours[day, user, label] += seconds / HOUR_S / len(labels)
    return [
        {"day": day, "user": user, "label": label, "slotHours": hours}
        for (day, user, label), hours in sorted(slot_hours.items(), reverse=True)
        if hours > 0
    ]


def _owner(state: State, key: UsageKey, task_owners: Mapping[str, TaskOwner]) -> tuple[str, tuple[str, ...]]:
    experiment = state.experiments.get(key.experiment_id) or state.deleted_experiments.get(key.experiment_id)
    task = state.tasks.get(key.task_id) or task_owners.get(key.task_id)
    name = task.user if task else experiment.user if experiment else NOBODY
    user = users.by_any_name(state, name)
    labels = experiment.labels if experiment and experiment.labels else (NOBODY,)
    return user.username if user else name, labels


def departed_workers(
    state: State, runs: Sequence[Allocation], since: float, is_visible: IsVisible = _always_visible
) -> list[dict[str, Any]]:
    """Workers that left or were lost since `since`, with the fate of their last runs, newest first.

    `runs` must contain those that held slots at any time from `LAST_RUN_MARGIN_S` before `since`.
    """
    departed = sorted(
        (worker for worker in state.away.values() if worker.gone_at is not None and worker.gone_at > since),
        key=lambda worker: -(worker.gone_at or 0.0),
    )
    return [
        {
            "id": worker.id,
            "resourcePools": [worker.pool],
            "slots": len(worker.slots),
            "goneTime": format_time(worker.gone_at or 0.0),
            "reason": worker.gone_why,
            "runs": [
                _run_entry(state, run, is_visible)
                for run in runs
                if (run.ended_at is None or run.ended_at > (worker.gone_at or 0.0) - LAST_RUN_MARGIN_S)
                and any(part.worker_id == worker.id for part in run.members)
                and (run.started_at or 0.0) <= (worker.gone_at or 0.0)
            ],
        }
        for worker in departed
    ]
