"""How an experiment spent its time, from the log: paused (and by whom), waiting for slots, or running."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from det_contracts.envelope import Recorded
from det_contracts.events import scheduler, searcher

What = Literal["paused", "waited", "ran", "stopping"]


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A period of one activity."""

    what: What
    since: float
    """Seconds since the epoch."""
    until: float | None
    """None while it lasts."""
    actor: str
    """Who caused it."""
    reason: str
    position: int
    """Position of the event that started it."""


class _Now(msgspec.Struct):
    paused: bool = True
    stopping: bool = False
    over: bool = False


def timeline(events: Iterable[Recorded]) -> list[Stretch]:
    """The periods of an experiment from submission to end, in order and without gaps."""
    found: list[Stretch] = []
    now, held = _Now(), set[str]()
    for recorded in events:
        _move(now, held, recorded.event)
        what = _what(now, held)
        if found and found[-1].until is None:
            if what == found[-1].what:
                continue
            found[-1] = msgspec.structs.replace(found[-1], until=recorded.at)
        if what is not None and (not found or found[-1].what != what):
            found.append(_stretch(what, recorded))
    return [one for one in found if one.until is None or one.until > one.since]


def _stretch(what: What, recorded: Recorded) -> Stretch:
    reason = str(getattr(recorded.event, "reason", ""))
    return Stretch(
        what=what,
        since=recorded.at,
        until=None,
        actor=recorded.actor,
        reason=reason,
        position=recorded.position,
    )


def _what(now: _Now, held: set[str]) -> What | None:
    if now.over:
        return None
    if now.stopping:
        return "stopping"
    if now.paused:
        return "paused"
    return "ran" if held else "waited"


def _move(now: _Now, held: set[str], event: object) -> None:
    match event:
        case searcher.ExperimentActivated():
            now.paused = False
        case searcher.ExperimentPaused():
            now.paused = True
        case searcher.ExperimentStopping():
            now.stopping = True
        case searcher.ExperimentEnded():
            now.over = True
        case scheduler.AllocationAssigned(allocation_id=id, kind="TRIAL"):
            held.add(id)
        case scheduler.AllocationEnded(allocation_id=id):
            held.discard(id)


def totals(stretches: Iterable[Stretch], now: float) -> dict[str, float]:
    """Total seconds of each activity."""
    found: dict[str, float] = {}
    for one in stretches:
        found[one.what] = found.get(one.what, 0.0) + (one.until or now) - one.since
    return found
