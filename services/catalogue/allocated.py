"""Allocated slot time, per run and aggregated by day or month (REST spec, section 8).

It counts what was allocated, regardless of how much was used. Times are seconds since the epoch, UTC.
"""

from __future__ import annotations

import asyncio
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NamedTuple

from det_contracts import spreadsheet
from services.catalogue.api_values import instant, maybe_instant
from services.catalogue.domain import Allocation, State
from services.catalogue.runs import Use
from services.people import places, users

Period = Literal["DAILY", "MONTHLY"]
KINDS = {"TRIAL": "training", "CHECKPOINT_GC": "gc"}
"""What 0.25 calls a kind of run; others by their own name in small letters."""
BATCH = 1000
"""Number of runs processed before yielding to other requests."""
SUMS = ("total", "username", "experiment_label", "resource_pool", "agent_label")
SUM_COLUMNS = ("aggregation_type", "aggregation_key", "date", "seconds")


class Held(NamedTuple):
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


async def held(
    state: State,
    runs: Iterable[Allocation],
    after: float,
    before: float,
    now: float,
    seen: Callable[[Allocation], bool],
) -> list[Held]:
    """The runs that held slots between `after` and `before`, in order of their start."""
    found = []
    for number, one in enumerate(runs, 1):
        if number % BATCH == 0:
            await asyncio.sleep(0)
        if one.started_at is None or not one.members:
            continue
        first, last = max(one.started_at, after), min(one.ended_at or max(now, one.started_at), before)
        if first < last and seen(one):
            found.append(_held(state, one, first, last))
    return sorted(found, key=lambda one: (one.began, one.id))


class Owner(NamedTuple):
    """Who a run belongs to, according to the current records."""

    username: str
    user_id: int
    workspace: str
    labels: tuple[str, ...]


def _owner(state: State, experiment_id: int, task_id: str) -> Owner:
    experiment, task = state.experiments.get(experiment_id), state.tasks.get(task_id)
    name = task.user if task else experiment.user if experiment else ""
    user = users.named(state, name)
    project = state.projects.get(experiment.project_id, places.PROJECT) if experiment else places.PROJECT
    known = state.workspaces.get(task.workspace_id if task else project.workspace_id, places.WORKSPACE)
    return Owner(
        username=user.username if user else name,
        user_id=user.id if user else 0,
        workspace=known.name,
        labels=experiment.labels if experiment else (),
    )


def _held(state: State, one: Allocation, first: float, last: float) -> Held:
    owner = _owner(state, one.experiment_id, one.task_id)
    return Held(
        id=one.id,
        kind=KINDS.get(one.kind, one.kind.lower()),
        experiment_id=one.experiment_id if one.experiment_id in state.experiments else None,
        username=owner.username,
        user_id=owner.user_id,
        workspace=owner.workspace,
        labels=owner.labels,
        pool=one.pool,
        slots=one.slots,
        began=one.started_at or 0.0,
        ended=one.ended_at,
        first=first,
        last=last,
    )


def raw_entry(one: Held) -> dict[str, Any]:
    """A run in the API's form; `seconds` is within the time range."""
    return {
        "kind": one.kind,
        "startTime": instant(one.began),
        "endTime": maybe_instant(one.ended),
        "experimentId": one.experiment_id,
        "username": one.username,
        "userId": one.user_id,
        "labels": list(one.labels),
        "seconds": one.seconds,
        "slots": one.slots,
    }


def raw_csv(found: Iterable[Held]) -> str:
    """The runs as a CSV table."""
    columns = ("experiment_id", "kind", "username", "labels", "slots", "start_time", "end_time", "seconds")
    rows = (
        (
            one.experiment_id,
            one.kind,
            one.username,
            ",".join(one.labels),
            one.slots,
            instant(one.began),
            maybe_instant(one.ended),
            one.seconds,
        )
        for one in found
    )
    return _table(columns, rows)


def allocations_csv(found: Iterable[Held]) -> str:
    """The runs as a CSV table with workspaces and slot hours."""
    columns = (
        "allocation_id", "task_type", "username", "workspace_name", "experiment_id", "slots", "start_time",
        "end_time", "slot_hours",
    )  # fmt: skip
    rows = (
        (
            one.id,
            one.kind,
            one.username,
            one.workspace,
            one.experiment_id,
            one.slots,
            instant(one.began),
            maybe_instant(one.ended),
            one.seconds * one.slots / 3600,
        )
        for one in found
    )
    return _table(columns, rows)


def _table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    spreadsheet.write(text, [columns])
    spreadsheet.write(text, rows)
    return text.getvalue()


class Sums:
    """Slot seconds of one day or month."""

    def __init__(self) -> None:
        self.by: dict[str, dict[str, float]] = {name: defaultdict(float) for name in SUMS}

    def add(self, of: Owner, pool: str, used: float) -> None:
        """Add slot seconds. They count in full for each label."""
        self.by["total"]["total"] += used
        self.by["username"][of.username] += used
        self.by["resource_pool"][pool] += used
        for label in of.labels:
            self.by["experiment_label"][label] += used


async def summed(
    state: State, used: Mapping[Use, float], period: Period, seen: Callable[[int], bool]
) -> dict[date, Sums]:
    """Slot seconds by the first day of each period that has any. `seen` tells visible experiments."""
    sums: dict[date, Sums] = {}
    for number, (one, seconds) in enumerate(sorted(used.items()), 1):
        if number % BATCH == 0:
            await asyncio.sleep(0)
        if seen(one.experiment_id):
            first = one.date if period == "DAILY" else one.date.replace(day=1)
            owner = _owner(state, one.experiment_id, one.task_id)
            sums.setdefault(first, Sums()).add(owner, one.pool, seconds)
    return sums


def following(first: date, period: Period) -> date:
    """The first day of the next period."""
    if period == "DAILY":
        return first + timedelta(days=1)
    return (first.replace(day=28) + timedelta(days=4)).replace(day=1)


def midnight(day: date) -> float:
    """The time at which a day begins."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def sum_entry(first: date, sums: Sums, period: Period) -> dict[str, Any]:
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


def sums_csv(found: dict[date, Sums], period: Period) -> str:
    """The sums as a CSV table, with one row per sum."""
    form = "%Y-%m-%d" if period == "DAILY" else "%Y-%m"
    rows = (
        (name, key, first.strftime(form), seconds)
        for first, sums in found.items()
        for name in SUMS
        for key, seconds in sorted(sums.by[name].items())
    )
    return _table(SUM_COLUMNS, rows)
