"""Slot usage: timelines of single slots, totals by day, and workers that are away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from services.catalogue import runs
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


class SlotTimelines:
    """What ran on each slot. Slots without runs are left out."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)

    def add(self, state: State, run: Allocation, is_visible: IsVisible) -> None:
        """Add a run that began after those before it."""
        shown = _run_entry(state, run, is_visible)
        for part in run.members:
            for slot in part.slots:
                self._runs[part.worker_id, slot].append(shown)

    def slots(self) -> list[dict[str, Any]]:
        """The slots in order, each with its runs."""
        return [
            {"agentId": agent, "slotId": str(slot), "runs": runs}
            for (agent, slot), runs in sorted(self._runs.items())
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


class DepartedWorkers:
    """Workers that left or were lost since some time, with the fate of their last runs."""

    def __init__(self, state: State, since: float) -> None:
        self._workers = [
            (worker.gone_at, worker)
            for worker in state.away.values()
            if worker.gone_at is not None and worker.gone_at > since
        ]
        self._gone_at = {worker.id: gone_at for gone_at, worker in self._workers}
        self._last_runs: dict[str, list[Allocation]] = defaultdict(list)

    def add_last_runs(self, connection: sa.Connection) -> None:
        """Read the last runs of these workers, going through those that ended since the first one left."""
        if self._gone_at:
            for run in runs.runs_since(connection, min(self._gone_at.values()) - LAST_RUN_MARGIN_S):
                self._add(run)

    def _add(self, run: Allocation) -> None:
        for worker_id in dict.fromkeys(part.worker_id for part in run.members):
            gone_at = self._gone_at.get(worker_id, 0.0)
            if (run.started_at or 0.0) <= gone_at and (
                run.ended_at is None or run.ended_at > gone_at - LAST_RUN_MARGIN_S
            ):
                self._last_runs[worker_id].append(run)

    def shown(self, state: State, is_visible: IsVisible) -> list[dict[str, Any]]:
        """The workers, the newest first."""
        return [
            {
                "id": worker.id,
                "resourcePools": [worker.pool],
                "slots": len(worker.slots),
                "goneTime": format_time(gone_at),
                "reason": worker.gone_why,
                "runs": [
                    _run_entry(state, run, is_visible)
                    for run in sorted(self._last_runs[worker.id], key=runs.start_order)
                ],
            }
            for gone_at, worker in sorted(self._workers, key=lambda entry: -entry[0])
        ]
