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
    found: list[Period] = []
    status, running = _Status(), set[str]()
    for recorded in events:
        _apply_event(status, running, recorded.event)
        what = _current_activity(status, running)
        if found and found[-1].until is None:
            if what == found[-1].what:
                continue
            found[-1] = msgspec.structs.replace(found[-1], until=recorded.at)
        if what is not None and (not found or found[-1].what != what):
            found.append(_start_period(what, recorded))
    # Several events of one batch have the same time, and leave periods without length.
    return [one for one in found if one.until is None or one.until > one.since]


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
    found: dict[str, float] = {}
    for one in periods:
        found[one.what] = found.get(one.what, 0.0) + (one.until or now) - one.since
    return found
