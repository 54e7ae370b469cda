"""Allocated slot time, per run and aggregated by day or month (REST spec, section 8).

It counts what was allocated, regardless of how much was used. Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from typing import Any, Literal, NamedTuple

from services.catalogue.api_values import format_optional_time, format_time
from services.catalogue.domain import Allocation, Experiment, State, TaskOwner
from services.catalogue.usage_days import UsageKey
from services.catalogue.visibility import Visibility
from services.people import users, workspace_records

Period = Literal["DAILY", "MONTHLY"]
KINDS = {"TRIAL": "training", "CHECKPOINT_GC": "gc"}
"""What 0.25 calls a kind of run; others by their own name in small letters."""
REMOVED = "(removed)"
"""The name of a workspace that is no more, or that of a project that is no more."""
BATCH = 1000
"""Number of runs processed before yielding to other requests."""
# `agent_label` is always empty, since agents have no labels here; clients of 0.25 read the key.
SUM_KINDS = ("total", "username", "experiment_label", "resource_pool", "agent_label")
SUM_COLUMNS = ("aggregation_type", "aggregation_key", "date", "seconds")
RAW_COLUMNS = ("experiment_id", "kind", "username", "labels", "slots", "start_time", "end_time", "seconds")
ALLOCATION_COLUMNS = (
    "allocation_id", "task_type", "username", "workspace_name", "experiment_id", "slots", "start_time",
    "end_time", "slot_hours",
)  # fmt: skip


class HeldRun(NamedTuple):
    """The part of a run that held slots within a time range."""

    id: str
    kind: str
    experiment_id: int | None
    """None for a task without an experiment."""
    username: str
    user_id: int
    workspace: str
    labels: tuple[str, ...]
    pool: str
    slots: int
    began: float
    ended: float | None
    """None while it is running."""
    first: float
    """Start of the counted time: the run's start, or that of the time range."""
    last: float

    @property
    def seconds(self) -> float:
        """How long the run held slots within the time range."""
        return self.last - self.first


def held_runs(
    state: State,
    runs: Iterable[Allocation],
    after: float,
    before: float,
    now: float,
    is_visible: Callable[[Allocation], bool],
) -> list[HeldRun]:
    """The runs among some that held slots between `after` and `before`."""
    runs_in_range = []
    for run in runs:
        if run.started_at is None or not run.members:
            continue
        first, last = max(run.started_at, after), min(run.ended_at or max(now, run.started_at), before)
        if first < last and is_visible(run):
            runs_in_range.append(_held_run(state, run, first, last))
    return runs_in_range


class Owner(NamedTuple):
    """Who a run belongs to, according to the current records."""

    username: str
    user_id: int
    workspace: str
    labels: tuple[str, ...]


def _owner(state: State, experiment_id: int, task_id: str, task_owner: TaskOwner | None) -> Owner:
    """`task_owner` is that of a task that is gone."""
    experiment, deleted = state.experiments.get(experiment_id), state.deleted_experiments.get(experiment_id)
    placed = state.tasks.get(task_id) or (None if experiment else task_owner or deleted)
    name = placed.user if placed else experiment.user if experiment else ""
    user = users.by_any_name(state, name)
    labelled = experiment or deleted
    return Owner(
        username=user.username if user else name,
        user_id=user.id if user else 0,
        workspace=_workspace_name(state, placed.workspace_id if placed else _workspace_of(state, experiment)),
        labels=labelled.labels if labelled else (),
    )


def _workspace_of(state: State, experiment: Experiment | None) -> int | None:
    if experiment is None or experiment.project_id == workspace_records.FIRST:
        return workspace_records.FIRST
    project = state.projects.get(experiment.project_id)
    return project.workspace_id if project is not None else None


def _workspace_name(state: State, id: int | None) -> str:
    # Not the first workspace, to which the hours would be charged.
    first = workspace_records.UNCATEGORIZED if id == workspace_records.FIRST else REMOVED
    return state.workspaces[id].name if id in state.workspaces else first


def _held_run(state: State, run: Allocation, first: float, last: float) -> HeldRun:
    owner = _owner(state, run.experiment_id, run.task_id, run.task_owner)
    return HeldRun(
        id=run.id,
        kind=KINDS.get(run.kind, run.kind.lower()),
        experiment_id=run.experiment_id if run.experiment_id in state.experiments else None,
        username=owner.username,
        user_id=owner.user_id,
        workspace=owner.workspace,
        labels=owner.labels,
        pool=run.pool,
        slots=run.slots,
        began=run.started_at or 0.0,
        ended=run.ended_at,
        first=first,
        last=last,
    )


def raw_entry(run: HeldRun) -> dict[str, Any]:
    """A run in the API's form; `seconds` is within the time range."""
    return {
        "kind": run.kind,
        "startTime": format_time(run.began),
        "endTime": format_optional_time(run.ended),
        "experimentId": run.experiment_id,
        "username": run.username,
        "userId": run.user_id,
        "labels": list(run.labels),
        "seconds": run.seconds,
        "slots": run.slots,
    }


def raw_row(run: HeldRun) -> tuple[Any, ...]:
    """A run as a row of `RAW_COLUMNS`."""
    return (
        run.experiment_id,
        run.kind,
        run.username,
        ",".join(run.labels),
        run.slots,
        format_time(run.began),
        format_optional_time(run.ended),
        run.seconds,
    )


def allocation_row(run: HeldRun) -> tuple[Any, ...]:
    """A run as a row of `ALLOCATION_COLUMNS`, with its workspace and slot hours."""
    return (
        run.id,
        run.kind,
        run.username,
        run.workspace,
        run.experiment_id,
        run.slots,
        format_time(run.began),
        format_optional_time(run.ended),
        run.seconds * run.slots / 3600,
    )


class PeriodSums:
    """Slot seconds of one day or month."""

    def __init__(self) -> None:
        self.by: dict[str, dict[str, float]] = {name: defaultdict(float) for name in SUM_KINDS}

    def add(self, of: Owner, pool: str, used: float) -> None:
        """Add slot seconds. They count in full for each label."""
        self.by["total"]["total"] += used
        self.by["username"][of.username] += used
        self.by["resource_pool"][pool] += used
        for label in of.labels:
            self.by["experiment_label"][label] += used


async def sum_by_period(
    state: State,
    used: Mapping[UsageKey, float],
    task_owners: Mapping[str, TaskOwner],
    period: Period,
    visibility: Visibility,
) -> dict[date, PeriodSums]:
    """Slot seconds by the first day of each period that has any. `task_owners` are of forgotten tasks."""
    sums: dict[date, PeriodSums] = {}
    for number, (key, seconds) in enumerate(sorted(used.items()), 1):
        if number % BATCH == 0:
            await asyncio.sleep(0)
        task_owner = task_owners.get(key.task_id)
        if visibility.includes_use(key.experiment_id, task_owner):
            period_start = key.date if period == "DAILY" else key.date.replace(day=1)
            owner = _owner(state, key.experiment_id, key.task_id, task_owner)
            sums.setdefault(period_start, PeriodSums()).add(owner, key.pool, seconds)
    return sums


def next_period(first: date, period: Period) -> date:
    """The first day of the next period."""
    if period == "DAILY":
        return first + timedelta(days=1)
    # Every month has a 28th, and four days later it is always the next month.
    return (first.replace(day=28) + timedelta(days=4)).replace(day=1)


def sum_entry(first: date, sums: PeriodSums, period: Period) -> dict[str, Any]:
    """The sums of a period in the API's form."""
    return {
        "periodStart": first.isoformat(),
        "period": f"RESOURCE_ALLOCATION_AGGREGATION_PERIOD_{period}",
        "seconds": sums.by["total"]["total"],
        "byUsername": sums.by["username"],
        "byExperimentLabel": sums.by["experiment_label"],
        "byResourcePool": sums.by["resource_pool"],
        "byAgentLabel": sums.by["agent_label"],
    }


def sum_rows(first: date, sums: PeriodSums, period: Period) -> list[tuple[Any, ...]]:
    """The sums of a period as rows of `SUM_COLUMNS`."""
    shown_date = first.strftime("%Y-%m-%d" if period == "DAILY" else "%Y-%m")
    return [
        (name, key, shown_date, seconds)
        for name in SUM_KINDS
        for key, seconds in sorted(sums.by[name].items())
    ]
