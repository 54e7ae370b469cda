"""How an experiment spent its time, from the log: paused (and by whom), waiting for slots, or running."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, searcher

Activity = Literal["paused", "waited", "ran", "stopping"]


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A period of one activity."""

    what: Activity
    since: float
    """Seconds since the epoch."""
    until: float | None
    """None while it lasts."""
    actor: str
    """Who caused it."""
    reason: str
    position: int
    """Position of the event that started it."""


class _Status(msgspec.Struct):
    paused: bool = True
    stopping: bool = False
    over: bool = False


def timeline(events: Iterable[Recorded]) -> list[Period]:
    """The periods of an experiment from submission to end, in order and without gaps."""
    periods: list[Period] = []
    status, running = _Status(), set[str]()
    for recorded in events:
        _apply_event(status, running, recorded.event)
        what = _current_activity(status, running)
        if periods and periods[-1].until is None:
            if what == periods[-1].what:
                continue
            periods[-1] = msgspec.structs.replace(periods[-1], until=recorded.at)
        if what is not None and (not periods or periods[-1].what != what):
            periods.append(_start_period(what, recorded))
    # Several events of one batch have the same time, and leave periods without length.
    return [period for period in periods if period.until is None or period.until > period.since]


def _start_period(what: Activity, recorded: Recorded) -> Period:
    reason = str(getattr(recorded.event, "reason", ""))
    return Period(
        what=what,
        since=recorded.at,
        until=None,
        actor=recorded.actor,
        reason=reason,
        position=recorded.position,
    )


def _current_activity(status: _Status, running: set[str]) -> Activity | None:
    if status.over:
        return None
    if status.stopping:
        return "stopping"
    if status.paused:
        return "paused"
    return "ran" if running else "waited"


def _apply_event(status: _Status, running: set[str], event: object) -> None:
    match event:
        case searcher.ExperimentActivated():
            status.paused = False
        case searcher.ExperimentPaused():
            status.paused = True
        case searcher.ExperimentStopping():
            status.stopping = True
        case searcher.ExperimentEnded():
            status.over = True
        case scheduler.AllocationAssigned(allocation_id=id, kind="TRIAL"):
            running.add(id)
        case scheduler.AllocationEnded(allocation_id=id):
            running.discard(id)


def totals(periods: Iterable[Period], now: float) -> dict[str, float]:
    """Total seconds of each activity."""
    seconds: dict[str, float] = {}
    for period in periods:
        seconds[period.what] = seconds.get(period.what, 0.0) + (period.until or now) - period.since
    return seconds
